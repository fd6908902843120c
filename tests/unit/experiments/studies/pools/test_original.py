"""The document's tables as printed, and the faults that a program finds in them."""

from experiments.studies.pools import original
from experiments.studies.pools.design import CONNECTIONS, POOLS, VERBS
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
