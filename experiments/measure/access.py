"""Credentials of servers that ask for them, and of the clients of these servers. A process makes them once."""

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from clients.load.plan.load_plan import CLIENT_KINDS
from experiments.design.factors import OPEN, TLS
from experiments.design.levels import Level, shown
from experiments.peers import PYTHON, SERVICER, STRANGERS
from experiments.services import NULL, OURS, PLAIN
from stock_service.rpc.errors import UsageError
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials, read_token


def server_options(levels: Mapping[str, Level]) -> Sequence[str]:
    """Options of a server that asks for a token, or speaks TLS. Raises UsageError where credentials cannot be made."""
    if levels["access"] == OPEN:
        return ()
    if levels["access"] == TLS:
        return "--tls-cert", str(_folder() / "server.pem"), "--tls-key", str(_folder() / "server-key.pem")
    return "--access", str(_folder() / "access.toml")


def is_somebodys(levels: Mapping[str, Level]) -> bool:
    """True for a server that is given by a command or an address, so that it is not this project's."""
    return levels["language"] == PYTHON and levels["service"] not in (*OURS, NULL, PLAIN, SERVICER, *STRANGERS)


def client_credentials(levels: Mapping[str, Level], given: ClientCredentials = NO_CREDENTIALS) -> ClientCredentials:
    """Credentials of the clients of a server at these levels; ``given`` for a command or an address. The metadata of
    ``given`` is sent to every server, so that the requests of both sides are alike. Raises UsageError where server or
    client takes no credentials."""
    is_given = given != NO_CREDENTIALS and is_somebodys(levels)
    if levels["access"] == OPEN:
        return ClientCredentials(metadata=given.metadata)
    is_ours = levels["service"] in OURS and levels["language"] == PYTHON
    if not (is_given or is_ours) or levels["client"] not in CLIENT_KINDS:
        allowed = f"{OPEN}, but for our own servers and client={'|'.join(CLIENT_KINDS)}"
        raise UsageError("access", shown(levels["access"]), allowed)
    if is_given:
        return given
    if levels["access"] == TLS:
        return ClientCredentials(authority=_folder() / "ca.pem", metadata=given.metadata)
    return ClientCredentials(token=read_token(_folder() / "trader.token"), metadata=given.metadata)


@cache
def _folder() -> Path:
    """Folder of the credentials, until this process ends. Raises UsageError without the library that makes them."""
    from stock_service.rpc.process.credentials import make  # which needs cryptography

    folder = Path(tempfile.mkdtemp(prefix="credentials-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make(folder)
    return folder
