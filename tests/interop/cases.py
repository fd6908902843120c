"""The cases of other people's test programs for gRPC servers, run against our own: h2spec's and grpc-go's.

h2spec tries a server on what HTTP/2 and HPACK ask for; grpc-go's interoperability client on what gRPC asks for.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from stock_service.rpc.transports import Address
from tests.conformance.running import Kind, Running, maker
from tests.interop.conftest import serving
from tests.interop.interop_service import interop_service

H2SPEC_CASES = 145
"""Number of h2spec 2.2.1's cases, without those that need an option."""

WAIVED = {
    "Sends a dynamic table size update larger than the value of SETTINGS_HEADER_TABLE_SIZE": (
        "We announce a header table of size 0, and read what a client does with one of up to 4096 bytes all the same. "
        "So must whoever wants to pass the other cases: after it has acknowledged the size 0, h2spec goes on to use "
        "its table, and to announce other sizes."
    )
}
"""Cases that we do not pass, and why."""


def h2spec(tool: str) -> tuple[int, set[str], str]:
    """Number of cases that the tool tried on a server, the failed ones, and the tool's output."""
    with TemporaryDirectory() as folder, serving("grpc_static") as address:
        report = Path(folder) / "report.xml"
        host, _, port = address.rpartition(":")
        command = [tool, "--host", host, "--port", port, "--timeout", "5", "--junit-report", str(report)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
        assert report.exists(), done.stdout + done.stderr
        cases = list(ElementTree.parse(report).iter("testcase"))
    return len(cases), {case.get("classname", "") for case in cases if len(case)}, done.stdout


GO_CASES = [
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

- ``client_streaming`` and ``cancel_after_begin`` call ``StreamingInputCall``, whose reply follows from many messages.
- ``orca_per_rpc`` and ``orca_oob`` ask a server's load, for a client that balances it over several.
- ``rpc_soak`` and ``channel_soak`` take as long as they are told.
- ``compute_engine_creds``, ``service_account_creds``, ``jwt_token_creds``, ``per_rpc_creds``, ``oauth2_auth_token``,
  ``google_default_credentials`` and ``compute_engine_channel_credentials`` need TLS and accounts of Google's.
"""


def interop_server() -> Running:
    """A server of the service that they call; for ``with``."""
    return maker(Kind("grpc_static", "leader-followers"))(interop_service())


def go_case(tool: str, case: str, address: Address) -> str:
    """The tool's words on a case that failed; empty where it passed."""
    host, port = address
    command = [tool, "--use_tls=false", f"--server_host={host}", f"--server_port={port}", f"--test_case={case}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    return f"exit code {done.returncode}: {done.stdout}{done.stderr}" if done.returncode else ""
