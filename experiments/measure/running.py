"""Finds the processes of a server that runs already on this machine.

``/proc/net/tcp`` lists the listening sockets, each with its inode. For each open socket of a process, ``/proc/PID/fd``
has a link with the socket's inode. Only root and the user of a process may read the links of the process. Left out:
processes of the server that do not listen; operating systems other than Linux, where no process is found.
"""

import os
import re
import socket
import sys
from collections.abc import Collection, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import psutil

from stock_service.rpc.option_types import shown_address
from stock_service.rpc.transports import Address

_LISTENS = "0A"
"""Code for the state of a listening socket (proc(5))."""

_SOCKET = re.compile(r"socket:\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Listening:
    """Ids of the processes that listen on an address. If no process was found, ``unread`` gives the reason as a
    sentence."""

    pids: tuple[int, ...]
    unread: str = ""


def listening(address: Address, proc: Path = Path("/proc")) -> Listening:
    """Finds the processes that listen on an address. Blocks for some milliseconds."""
    at = shown_address(address)
    hosts = _hosts(address)
    if not hosts:
        return Listening((), f"{at} is not on this machine")
    inodes = {inode for host, port, inode in _sockets(proc) if port == address[1] and host in hosts}
    if not inodes:
        return Listening((), f"no process on this machine listens on {at}; it may run in a container")
    pids = tuple(sorted(_holding(inodes, proc)))
    return Listening(pids, "" if pids else f"the process that listens on {at} is not yours: run this as its user")


def _hosts(address: Address) -> Collection[str]:
    """Numeric hosts. A socket that listens on one of these hosts accepts connections to ``address``. Empty if
    ``address`` is on another machine."""
    with suppress(OSError):
        own = {_plain(each.address) for every in psutil.net_if_addrs().values() for each in every}
        named = {_plain(str(found[4][0])) for found in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)}
        if all(host in own or ip_address(host).is_loopback for host in named):
            return {*named, "0.0.0.0", "::"}
    return ()


def _sockets(proc: Path) -> Iterator[tuple[str, int, int]]:
    """Host, port and inode of each listening TCP socket of this machine."""
    for name in ("tcp", "tcp6"):
        with suppress(OSError):  # a system without IPv6 has no such file
            for line in (proc / "net" / name).read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                host, _, port = words[1].partition(":")
                if words[3] == _LISTENS:
                    yield _host(host), int(port, 16), int(words[9])


def _host(digits: str) -> str:
    """Host from the kernel's hexadecimal digits. Every eight digits are a word of four bytes in the processor's byte
    order."""
    words = (int(word, 16).to_bytes(4, sys.byteorder) for word in re.findall("." * 8, digits))
    return _plain(str(ip_address(b"".join(words))))


def _plain(host: str) -> str:
    """Host without its zone (``%eth0``). An IPv4 address inside an IPv6 address becomes an IPv4 address."""
    host = host.partition("%")[0]
    with suppress(ValueError):
        number = ip_address(host)
        return str((number.ipv4_mapped or number) if isinstance(number, IPv6Address) else number)
    return host


def _holding(inodes: Set[int], proc: Path) -> Iterator[int]:
    """Ids of the processes that have one of these sockets open. Left out: processes that this user is not allowed to
    read."""
    for folder in proc.glob("[0-9]*/fd"):
        if not inodes.isdisjoint(_inodes(folder)):
            yield int(folder.parent.name)


def _inodes(folder: Path) -> Iterator[int]:
    """Inodes of a process's open sockets. Empty for a process of another user, and for an ended process."""
    with suppress(OSError):
        for each in list(folder.iterdir()):
            with suppress(OSError):  # the file was closed meanwhile
                if found := _SOCKET.fullmatch(os.readlink(each)):
                    yield int(found[1])
