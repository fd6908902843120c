"""Credentials for tests of TLS, made once in a run, and TLS contexts."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from stock_service.rpc.process.credentials import make
from stock_service.rpc.tls import ClientCredentials, ServerTls, TlsFiles

_KEPT: list[TemporaryDirectory[str]] = []
"""Folder that is removed when the process ends."""


@cache
def credentials() -> Path:
    """A folder of credentials, for reading only."""
    _KEPT.append(TemporaryDirectory(prefix="credentials-"))
    folder = Path(_KEPT[0].name) / "made"
    make(folder)
    return folder


def server_tls(folder: Path, *protocols: str) -> ServerTls:
    """A server's TLS that asks clients for no certificate."""
    return ServerTls(TlsFiles(folder / "server.pem", folder / "server-key.pem"), protocols)


def trusting(folder: Path) -> ClientCredentials:
    """Credentials of a client that trusts the server and shows none itself."""
    return ClientCredentials(folder / "ca.pem")
