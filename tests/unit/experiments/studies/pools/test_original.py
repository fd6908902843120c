"""The document's tables as printed, and the faults that a program finds in them."""

from experiments.studies.pools import original
from experiments.studies.pools.design import CONNECTIONS, POOLS, VERBS
from experiments.studies.pools.figures import faults
from experiments.studies.pools.original import TABLES


def test_every_cell_is_there_once() -> None:
    """Every cell is there once: two languages, six pools, three connections, GET and PUT."""
    for verb in VERBS:
        assert len(TABLES[verb]) == 36
        assert {(row.language, row.pool, row.connections) for row in TABLES[verb]} == {
            (language, pool, connections)
            for language in ("go", "rust")
            for pool in POOLS
            for connections in CONNECTIONS
        }
    (row,) = (rust for rust, _ in original.pairs("put") if (rust.pool, rust.connections) == (16, 1000))
    assert (row.cpu_percent_max, row.total_s, row.response_ms, row.processing_ms) == (133.0, 9.867, 98.668, 46.0)


def test_bytes_a_request_are_one_number() -> None:
    """Rate × total is the same for all cells of a language and request, so that no digit of these columns was
    misread."""
    for verb in VERBS:
        for language in ("go", "rust"):
            rows = [row for row in TABLES[verb] if row.language == language]
            received = [row.received_kb_s * row.total_s for row in rows]
            assert max(received) / min(received) < 1.001
            sent = [row.sent_kb_s * row.total_s for row in rows]
            assert max(sent) == 0 if verb == "get" else max(sent) / min(sent) < 1.001


def test_five_means_break_littles_law() -> None:
    """Five means break Little's law, all of Go's PUT at 100 connections. The other means agree with their totals."""
    broken = original.impossible_means()
    assert [row.response_ms for row in broken] == [0.877, 0.668, 0.675, 0.576, 0.589]
    assert {(row.language, row.connections) for row in broken} == {("go", 100)}
    assert [round(row.little_ms, 3) for row in broken] == [8.877, 8.668, 8.675, 8.576, 8.589]


def test_rust_is_not_faster_in_three_of_eighteen() -> None:
    """By totals Rust is not faster in three of eighteen PUT comparisons, and in none of GET."""
    assert original.rust_not_faster("get") == ()
    slower = [(rust.pool, rust.connections) for rust, _ in original.rust_not_faster("put")]
    assert slower == [(64, 100), (16, 1000), (32, 1000)]


def test_conclusions_fail_in_its_own_tables() -> None:
    """Conclusions fail in the document's own tables: on the processor and memory of a larger pool, and on the time of
    connecting."""
    for quantity, case in (("cpu_percent", ("go", 1000)), ("memory_percent", ("go", 10))):
        assert original.pool_lowers(quantity, "get") == original.pool_lowers(quantity, "put") == (case,)
    assert (original.go_connects_later("get"), original.go_connects_later("put")) == (POOLS, ())
    assert len(list(faults())) == 7
