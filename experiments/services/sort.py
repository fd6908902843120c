"""The sort service: each request sorts an array of whole numbers, by merge sort or by quicksort as in textbooks.

Both algorithms are in plain Python and do not use ``sorted``, since the study ``sort`` measures their cost.
Sources: Knuth, *The Art of Computer Programming* 3, 5.2.4 (merging); Hoare, "Quicksort", *The Computer Journal* 5
(1962). Quicksort takes the middle value as pivot, so that a sorted list is not a bad case. Bad cases with quadratic
time exist.
"""

from experiments.v1 import sort_pb2
from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.service import Method, Service

SORT_SERVICE = sort_pb2.DESCRIPTOR.services_by_name["SortService"].full_name
MERGE_SORT = f"/{SORT_SERVICE}/MergeSort"
QUICK_SORT = f"/{SORT_SERVICE}/QuickSort"

VALUES_MAX = 100_000
"""Largest number of values in a request. Sorting these values takes a third of a second."""


def merge_sort(values: list[int]) -> list[int]:
    """Returns the values in ascending order, in a new list. O(n log n)."""
    if len(values) <= 1:
        return values[:]
    middle = len(values) // 2
    return _merge(merge_sort(values[:middle]), merge_sort(values[middle:]))


def _merge(left: list[int], right: list[int]) -> list[int]:
    """Returns the values of two sorted lists in ascending order, in a new list. O(n)."""
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def quick_sort(values: list[int]) -> list[int]:
    """Returns the values in ascending order, in a new list. O(n log n) on average, O(n²) at worst. Recursion depth
    O(log n).
    """
    ordered = values[:]
    _quick_sort(ordered, 0, len(ordered) - 1)
    return ordered


def _quick_sort(values: list[int], low: int, high: int) -> None:
    """Sorts ``values[low : high + 1]`` in place. Recurses only into the shorter part, so that the depth is O(log n)."""
    while low < high:
        middle = _partition(values, low, high)
        if middle - low < high - middle:
            _quick_sort(values, low, middle)
            low = middle + 1
        else:
            _quick_sort(values, middle + 1, high)
            high = middle


def _partition(values: list[int], low: int, high: int) -> int:
    """Partitions ``values[low : high + 1]`` in place by Hoare's method. ``low`` must be less than ``high``.

    Returns an index below ``high``. Every value up to the index is at most as large as every value after the index.
    """
    pivot = values[(low + high) // 2]
    i, j = low - 1, high + 1
    while True:
        i += 1
        while values[i] < pivot:
            i += 1
        j -= 1
        while values[j] > pivot:
            j -= 1
        if i >= j:
            return j
        values[i], values[j] = values[j], values[i]


def sort() -> Service:
    """Sort service with the methods MergeSort and QuickSort. A request with over ``VALUES_MAX`` values gets the fault
    InvalidRequest.
    """

    def by_merging(request: sort_pb2.MergeSortRequest) -> sort_pb2.MergeSortResponse:
        return sort_pb2.MergeSortResponse(values=merge_sort(_bounded(list(request.values))))

    def by_partitioning(request: sort_pb2.QuickSortRequest) -> sort_pb2.QuickSortResponse:
        return sort_pb2.QuickSortResponse(values=quick_sort(_bounded(list(request.values))))

    return Service(
        SORT_SERVICE,
        {
            MERGE_SORT: Method(sort_pb2.MergeSortRequest, sort_pb2.MergeSortResponse, by_merging),
            QUICK_SORT: Method(sort_pb2.QuickSortRequest, sort_pb2.QuickSortResponse, by_partitioning),
        },
    )


def _bounded(values: list[int]) -> list[int]:
    if len(values) > VALUES_MAX:
        raise InvalidRequest(f"{len(values)} values to sort, allowed: {VALUES_MAX}")
    return values
