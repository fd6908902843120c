"""The peers' own tests, in their own languages, and their compilers' warnings."""

import re

import pytest

from experiments.peers import BUILT, PEERS, PYTHON, SOURCES, Absent, server_command
from tests.interop.conftest import OFFLINE, leave_out, run

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

_CARGO_TEST = ("cargo", "test", "--release", "--locked", "--offline", "--target-dir", str(BUILT / "rust"))

COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "go": (("go", "vet", "./..."), ("go", "test", "-vet=off", "./...")),
    "c": (("./test.sh", str(BUILT / "c")),),
    "cpp": (("./test.sh", str(BUILT / "cpp")),),
    "rust": (_CARGO_TEST, (*_CARGO_TEST, "--manifest-path", "stock_server/Cargo.toml")),
}
"""Commands by language. Each exits with 0 if all tests pass. No command uses the network: ``make peers`` has fetched
all libraries. Go's tests are not vetted again: with the choice of analyses that ``go test`` has, that is all of gRPC
once more. Rust's tests are built as the peer is, so that what both depend on is built once. ``make
check-reliability-overnight`` runs Go's tests again with race detection, which compiles gRPC anew: two minutes of two
cores."""


def test_every_language_is_tested() -> None:
    """No peer that is built is without tests of its own; one in Python is tested like all of Python."""
    assert {peer.language for peer in PEERS.values() if peer.build} - {PYTHON} <= set(COMMANDS)


@pytest.mark.parametrize("language", COMMANDS)
def test_its_own_tests_pass(language: str) -> None:
    """The peers' own tests pass, without a warning of the compiler."""
    for name in (name for name, peer in PEERS.items() if peer.language == language):
        try:
            server_command(name)
        except Absent as absent:
            leave_out(str(absent))
    for command in COMMANDS[language]:
        run(*command, cwd=SOURCES / language, **OFFLINE)


STEPS = ["create", "bind", "connect", "send", "receive", "close"]


@pytest.mark.parametrize("api", ["berkeley", "zeromq", "nanomsg", "nng"])
def test_every_step_can_be_counted(api: str) -> None:
    """A socket API's file marks each step once, in the common order, with an end and lines between."""
    text = (SOURCES / "c" / "sockets" / f"{api}.c").read_text()
    marked = re.findall(r"^ +/\* step: (\w+) \*/\n(.*?)^ +/\* end \*/$", text, re.MULTILINE | re.DOTALL)
    assert [step for step, _ in marked] == STEPS
    assert all(lines.strip() for _, lines in marked)
