"""Sorting: comparison of both algorithms with ``sorted``, and the limit of the service."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.services.sort import MERGE_SORT, VALUES_MAX, merge_sort, quick_sort, sort
from experiments.v1 import sort_pb2
from stock_service.rpc.errors import InvalidRequest
from tests.raw_service import answered

VALUES = st.lists(st.integers(-(2**63), 2**63 - 1)) | st.lists(st.integers(0, 3), max_size=40)
"""Lists of any numbers, and lists with many equal numbers."""

algorithms = pytest.mark.parametrize("algorithm", [merge_sort, quick_sort], ids=["merge", "quick"])


@algorithms
@given(VALUES)
def test_values_come_out_in_order(algorithm: Callable[[list[int]], list[int]], values: list[int]) -> None:
    """Both algorithms give the result of ``sorted``, and do not change the given list."""
    before = values[:]
    assert algorithm(values) == sorted(values)
    assert values == before


@algorithms
@pytest.mark.parametrize("values", [list(range(5000)), [7] * 5000, list(range(5000))[::-1]], ids=["up", "=", "down"])
def test_long_runs_are_no_bad_case(algorithm: Callable[[list[int]], list[int]], values: list[int]) -> None:
    """Sorted, equal and reversed values need neither deep recursion nor quadratic time, which would exceed the time
    limit."""
    assert algorithm(values) == sorted(values)


def test_too_many_values_are_refused() -> None:
    """A request with more values than the limit is INVALID_ARGUMENT."""
    payload = sort_pb2.MergeSortRequest(values=[0] * (VALUES_MAX + 1)).SerializeToString()
    with pytest.raises(InvalidRequest, match="100001 values to sort, allowed: 100000"):
        answered(sort(), MERGE_SORT, payload)
