"""The interoperability cases of grpc-go's own client, against our own gRPC server."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.running import Kind, Running, maker
from tests.interop.interop_service import interop_service

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CASES = [
    "empty_unary",
    "large_unary",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
    "pick_first_unary",
]
"""All but these, in the client's own words:

- ``client_streaming`` and ``cancel_after_begin`` call ``StreamingInputCall``, whose reply follows from many messages,
- ``orca_per_rpc`` and ``orca_oob`` ask a server's load, for a client that balances it over several,
- ``rpc_soak`` and ``channel_soak`` take as long as they are told,
- ``compute_engine_creds``, ``service_account_creds``, ``jwt_token_creds``, ``per_rpc_creds``, ``oauth2_auth_token``,
  ``google_default_credentials`` and ``compute_engine_channel_credentials`` need TLS and accounts of Google's.
"""


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A server of the service that they call."""
    with maker(Kind("grpc_static", "static-pool"))(interop_service()) as server:
        yield server


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, running: Running, tool: Callable[[str], str]) -> None:
    """It passes."""
    host, port = running.address
    command = [tool("grpc-go-interop"), "--use_tls=false", f"--server_host={host}", f"--server_port={port}"]
    done = subprocess.run([*command, f"--test_case={case}"], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
