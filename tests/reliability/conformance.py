"""Promise: our own gRPC server conforms, by the cases of h2spec and of grpc-go's interoperability client. ``make
go-tools`` builds both tools. The cases of an absent tool are not tried, and a row says so.
"""

from collections.abc import Callable

from tests.interop.cases import GO_CASES, H2SPEC_CASES, WAIVED, go_case, h2spec, interop_server
from tests.interop.conftest import TOOLS
from tests.reliability.rows import Row, absent

H2SPEC, GO = "h2spec", "grpc-go-interop"


def check(_minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for ten seconds. An absent tool has a row that is not kept."""
    return [_tried(H2SPEC, _h2spec), _tried(GO, _go_cases)]


def _tried(tool: str, cases: Callable[[str], Row]) -> Row:
    path = TOOLS / tool
    if path.exists():
        return cases(str(path))
    return Row(absent(tool), "every case", "not tried: run make go-tools, which needs Go", passed=False)


def _h2spec(tool: str) -> Row:
    tried, failed, _ = h2spec(tool)
    passed = failed <= set(WAIVED) and tried == H2SPEC_CASES
    why = "; ".join(reason.partition(". ")[0] for reason in WAIVED.values())
    figure = f"{tried - len(failed)} of {tried}; waived: {len(failed & set(WAIVED))} ({why})"
    if others := sorted(failed - set(WAIVED)):
        figure += f"; failed: {', '.join(others)}"
    return Row("h2spec: cases passed", f"{H2SPEC_CASES}, but for {len(WAIVED)} waived", figure, passed)


def _go_cases(tool: str) -> Row:
    with interop_server() as server:
        failed = [case for case in GO_CASES if go_case(tool, case, server.address)]
    figure = f"{len(GO_CASES) - len(failed)} of {len(GO_CASES)}" + (f"; failed: {', '.join(failed)}" if failed else "")
    return Row("grpc-go's interoperability client: cases passed", f"all of {len(GO_CASES)}", figure, not failed)
