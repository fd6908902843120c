"""Options of a server for TLS and access control, the check of its address, and the renewal of its files.

A thread looks at each file twice a second. When a file has changed, the thread reads all files again. From then on new
connections get the new certificate, and the server checks all requests by the new access list. Open connections
continue. If the thread cannot use the files, the old contents stay in use, and the thread tries again at each look. The
log has one line on such a failure. The access list and the certificate are renewed independently of each other. To
renew a certificate, write its files, in any order. To withdraw a token, change one line of the access list.
"""

import argparse
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stock_service.rpc.errors import UsageError
from stock_service.rpc.security import Access
from stock_service.rpc.server_core.options import is_loopback
from stock_service.rpc.tls import ServerTls, TlsFiles
from stock_service.rpc.transports import load

_log = logging.getLogger(__name__)

LOOK_S = 0.5
"""Seconds between two looks at the files."""


def add_security_options(parser: argparse.ArgumentParser) -> None:
    """Adds ``--insecure``, ``--tls-cert``, ``--tls-key``, ``--tls-client-ca`` and ``--access`` to a command line."""
    add = parser.add_argument
    help_text = "let others reach the server without TLS or without --access: read by anyone, or open to anyone"
    add("--insecure", action="store_true", help=help_text)
    add("--tls-cert", type=Path, metavar="FILE", help="the server's certificate and its chain, in PEM: speak TLS")
    add("--tls-key", type=Path, metavar="FILE", help="the certificate's private key, in PEM, unencrypted")
    help_text = "certificates in PEM, of which one must have signed each client's"
    add("--tls-client-ca", type=Path, metavar="FILE", help=help_text)
    help_text = "who may call what, in TOML: callers with rights, by token or client certificate"
    add("--access", type=Path, metavar="FILE", help=help_text)


@dataclass(frozen=True, slots=True)
class Security:
    """TLS and access list of a server, made from its options."""

    tls: ServerTls | None
    access: Access | None
    files: tuple[Path, ...]
    """Certificate, key and access-list files that the server's options name; ``watch`` looks at these files."""

    def reload(self) -> None:
        """Reads the access list and the TLS files again. If the access list cannot be used, still renews TLS, and the
        reverse; then raises UsageError.
        """
        unusable: UsageError | None = None
        for part in (self.access, self.tls):
            try:
                if part is not None:
                    part.reload()
            except UsageError as error:
                unusable = unusable or error
        if unusable is not None:
            raise unusable


def security_of(transport: str, options: argparse.Namespace) -> Security:
    """Makes TLS and access list for a transport from the options. Raises UsageError."""
    check_host(options)
    files: dict[str, Path | None] = {
        "--tls-cert": options.tls_cert,
        "--tls-key": options.tls_key,
        "--tls-client-ca": options.tls_client_ca,
    }
    for option, file in files.items():
        if file is not None and options.tls_cert is None:
            raise UsageError(option, str(file), "beside --tls-cert FILE")
    if options.tls_cert is not None and options.tls_key is None:
        raise UsageError("--tls-key", None, "beside --tls-cert, the file of its private key")
    if options.tls_client_ca is not None and options.access is None:
        raise UsageError("--tls-client-ca", str(options.tls_client_ca), "beside --access FILE: it says who may do what")
    tls = None
    if options.tls_cert is not None:
        pair = TlsFiles(options.tls_cert, options.tls_key, options.tls_client_ca)
        tls = ServerTls(pair, load(transport).TLS_PROTOCOLS)
    access = None if options.access is None else Access(options.access)
    return Security(tls, access, tuple(file for file in (*files.values(), options.access) if file is not None))


def check_host(options: argparse.Namespace) -> None:
    """Raises UsageError if other machines can reach the address of a server without TLS or without an access list,
    unless ``--insecure`` is given.
    """
    closed = options.tls_cert is not None and options.access is not None
    if not is_loopback(options.host) and not options.insecure and not closed:
        allowed = (
            "a loopback address (127.0.0.1, ::1, localhost); with --tls-cert, --tls-key and --access, any; or any with "
            "--insecure, where anyone may read along or use it"
        )
        raise UsageError("--host", options.host, allowed)


@contextmanager
def watch(files: Sequence[Path], reload: Callable[[], None], look_s: float = LOOK_S) -> Iterator[None]:
    """Calls ``reload`` on a separate thread when files change, until the end of the ``with`` statement.

    The first look also calls ``reload``, since the files may have changed after the server's first read. ``reload`` may
    raise UsageError, which the thread logs. Starts no thread if ``files`` is empty.
    """
    stopping = threading.Event()
    thread = threading.Thread(target=_watch, args=(files, reload, look_s, stopping), name="credentials-watch")
    if files:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        if files:
            thread.join()


def _watch(files: Sequence[Path], reload: Callable[[], None], look_s: float, stopping: threading.Event) -> None:
    """Main function of the thread that looks at the files every ``look_s`` seconds. Calls ``reload`` if a file has
    changed, or if the last ``reload`` failed.
    """
    seen: list[tuple[int, ...]] = []
    unusable = ""
    while not stopping.wait(look_s):
        looked = [_look(file) for file in files]
        if looked == seen and not unusable:
            continue
        seen = looked
        try:
            reload()
            unusable = ""
        except UsageError as error:
            if str(error) != unusable:
                _log.error("files changed and cannot be used; what was read before stays: %s", error)
            unusable = str(error)


def _look(file: Path) -> tuple[int, ...]:
    """Returns a value that changes when the file changes; empty if the file does not exist."""
    try:
        status = file.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
    except OSError:
        return ()  # the file is being replaced, or gone
