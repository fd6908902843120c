"""h2spec, which tries a server on what HTTP/2 and HPACK ask for, against our own gRPC server."""

from collections.abc import Callable

import pytest

from tests.interop.cases import H2SPEC_CASES, WAIVED, h2spec

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_h2spec(tool: Callable[[str], str]) -> None:
    """Every case passes, apart from the waived ones."""
    tried, failed, said = h2spec(tool("h2spec"))
    assert failed == set(WAIVED), said
    assert tried == H2SPEC_CASES
