"""A server that runs already: its processes, or the reason why no process can be read."""

import os
import socket
from pathlib import Path

import pytest

from experiments.measure.running import listening

_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
_LINE = (
    "   0: {host}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1\n"
)


def proc(folder: Path, host: str, held: dict[int, int], state: str = "0A", name: str = "tcp") -> Path:
    """A folder like ``/proc``: a socket with the inode 77 on port 5001, and the open inode of each process."""
    (folder / "net").mkdir(parents=True)
    (folder / "net" / name).write_text(_HEAD + _LINE.format(host=host, port=5001, state=state, inode=77))
    for pid, inode in held.items():
        (folder / str(pid) / "fd").mkdir(parents=True)
        (folder / str(pid) / "fd" / "3").symlink_to(f"socket:[{inode}]")
    return folder


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_process_that_listens_is_found(host: str) -> None:
    """A listening process is found by its address. Here it is this process."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip("no IPv6 here")
        listener.listen()
        at = host.replace("0.0.0.0", "127.0.0.1"), listener.getsockname()[1]
        assert listening(at).pids == (os.getpid(),)


def test_all_processes_that_share_the_socket_are_found(tmp_path: Path) -> None:
    """All processes that share the socket are found."""
    found = listening(("127.0.0.1", 5001), proc(tmp_path, "0100007F", {12: 77, 11: 77, 13: 78}))
    assert (found.pids, found.unread) == ((11, 12), "")


def test_a_socket_of_all_addresses_hears_each(tmp_path: Path) -> None:
    """An IPv6 socket of all addresses also accepts IPv4 addresses."""
    assert listening(("127.0.0.1", 5001), proc(tmp_path, "0" * 32, {11: 77}, name="tcp6")).pids == (11,)


@pytest.mark.parametrize(
    ("address", "host", "state", "why"),
    [
        (("127.0.0.1", 5001), "0100007F", "0A", "the process that listens on 127.0.0.1:5001 is not yours"),
        (("127.0.0.1", 5002), "0100007F", "0A", "no process on this machine listens on 127.0.0.1:5002"),
        (("127.0.0.2", 5001), "0100007F", "0A", "no process on this machine listens on 127.0.0.2:5001"),
        (("127.0.0.1", 5001), "0100007F", "01", "no process on this machine listens on 127.0.0.1:5001"),
        (("192.0.2.1", 5001), "00000000", "0A", "192.0.2.1:5001 is not on this machine"),
    ],
)
def test_a_process_that_cannot_be_read_has_a_reason(
    tmp_path: Path, address: tuple[str, int], host: str, state: str, why: str
) -> None:
    """The reason is another user's process, another port or address, a socket that does not listen, or another
    machine."""
    found = listening(address, proc(tmp_path, host, {}, state))
    assert found.pids == ()
    assert found.unread.startswith(why)
