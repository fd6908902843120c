"""Credentials for tests of TLS, made once in a run, and the server's side of them."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from stock_service.rpc.process.credentials import make
from stock_service.rpc.tls import ClientCredentials, ServerTls, TlsFiles

_KEPT: list[TemporaryDirectory[str]] = []
"""Removed when the process ends."""


@cache
def credentials() -> Path:
    """A folder of them; to be read alone."""
    _KEPT.append(TemporaryDirectory(prefix="credentials-"))
    folder = Path(_KEPT[0].name) / "made"
    make(folder)
    return folder


def server_tls(folder: Path, *protocols: str) -> ServerTls:
    """TLS that asks for no certificate of clients."""
    return ServerTls(TlsFiles(folder / "server.pem", folder / "server-key.pem"), protocols)


def trusting(folder: Path) -> ClientCredentials:
    """A client that shows nothing."""
    return ClientCredentials(folder / "ca.pem")
