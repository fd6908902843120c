"""``verify`` on runs' records and requests' own times: one value changed, with its digest left or made anew."""

import dataclasses
import itertools
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.load.record.recorder import RawRecords
from clients.load.record.times import Times
from experiments import verify
from experiments.run_records import RAW_FOLDER, load_raw, raw_digest
from experiments.runner import DESIGN_FILE
from tests.unit.experiments.edited_folder import (
    RUN_IDS,
    Document,
    documents_of,
    edit,
    first,
    found,
    keep,
    other,
    run_of,
)


def leaves(value: object) -> Iterator[tuple[str | int, ...]]:
    """Where in a document its numbers and texts are."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield ()
        return
    for name, part in items:
        yield from ((name, *rest) for rest in leaves(part))


@pytest.mark.slow
def test_one_changed_value_of_a_record_is_found_whichever_it_is(
    untouched: Path, folder: Path, rng: random.Random
) -> None:
    """Any number, text, histogram or truth of any run: found before anything is computed from it, with the run."""
    documents = documents_of(untouched)
    places = [(number, path) for number, document in enumerate(documents, start=1) for path in leaves(document)]
    for number, path in rng.sample(places, 30):
        keep(folder, documents)

        def change(document: Any, path: tuple[str | int, ...] = path) -> None:
            for name in path[:-1]:
                document = document[name]
            old = document[path[-1]]
            match old:
                case bool() | None:
                    document[path[-1]] = not old
                case str():
                    document[path[-1]] = other(old, rng)
                case _:
                    document[path[-1]] = old + 1

        edit(folder, number, change)
        difference = first(folder)
        assert difference, (number, path)
        assert str(number) in difference or RUN_IDS[number - 1] in difference


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["connects", "first_calls", "think"])
def test_a_count_that_is_not_its_histograms_is_named(folder: Path, kind: str) -> None:
    """Whatever the count, and though no percentile can then be computed: no traceback."""
    number = run_of("figure_4", clients=1)
    for count in (7, 10**9):

        def change(document: Any, count: int = count) -> None:
            document["seen"]["load"][kind]["count"] = count

        edit(folder, number, change)
        differences = found(folder)
        named = f"run {RUN_IDS[number - 1]}, {kind}: {count} times, and "
        assert sum(difference.startswith(named) for difference in differences) == 1


@pytest.mark.slow
def test_runs_of_which_no_report_can_be_made_are_differences_and_no_traceback(folder: Path) -> None:
    """Two runs of one setting in one block, by an edit; what is found before is said all the same."""
    number = run_of("figure_4", clients=1)

    def change(document: Any) -> None:
        document["run"]["block"] = 3 - document["run"]["block"]

    edit(folder, number, change)
    differences = found(folder)
    assert any(RUN_IDS[number - 1] in difference for difference in differences[:-1])
    assert differences[-1].startswith("the rest cannot be made of such runs: ")


@pytest.mark.slow
def test_a_fault_of_the_tools_own_is_no_difference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that nobody touched everything can be made."""

    def rows_text(_: object) -> str:
        raise IndexError

    monkeypatch.setattr(verify, "rows_text", rows_text)
    with pytest.raises(IndexError):
        found(folder)


def test_a_run_that_belongs_to_another_design_is_named(folder: Path) -> None:
    """One run with another's digest is named; where all have it, they are counted."""

    def change(document: Any) -> None:
        document["belongs_to"][DESIGN_FILE] = "0" * 64

    edit(folder, 2, change, seal=True)
    have = f"1 of {len(RUN_IDS)} runs have another's digest ({RUN_IDS[1]})"
    assert f"{DESIGN_FILE}: not the one that was written: {have}" in found(folder)


def moved(times: Times, by: int) -> Times:
    """The same distribution, with one value that stands so many buckets further on in the histogram, and only there."""
    lowest, _, counts = times.buckets()
    values = np.repeat(lowest, counts)
    values[len(values) // 2] = values[len(values) // 2] + by * (values[len(values) // 2] >> 10)
    again = Times()
    again.record(values)
    again.sum_ns, again.squares, again.min_ns, again.max_ns = times.sum_ns, times.squares, times.min_ns, times.max_ns
    return again


def in_response(**values: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        times = document["seen"]["load"]["parts"]["lookup"]["response"]
        times |= {name: times[name] + by for name, by in values.items()}

    return change


def in_bucket(by: int) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        part = document["seen"]["load"]["parts"]["lookup"]
        part["response"] = moved(Times.from_json(part["response"]), by).to_json()

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_bucket(1), "digest"),
        (in_bucket(40), "digest"),
        (in_response(count=1), "digest"),
        (in_response(sum_ns=1), "digest"),
        (in_response(out_of_range=1), "digest"),
    ],
)
def test_a_record_that_was_decoded_edited_and_written_again_is_found(
    folder: Path, change: Callable[[Document], None], message: str
) -> None:
    """One request in the next bucket, one more of them, one nanosecond: the digest says that it is another record."""
    number = run_of("figure_4", clients=2)
    edit(folder, number, change)
    difference = first(folder)
    assert difference.startswith(f"run {RUN_IDS[number - 1]}: ")
    assert message in difference


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_bucket(80), "slices: times that are not those of the histograms"),
        (in_bucket(1), "records: lookup: response times that are not those of the requests kept"),
        (in_response(count=1), r"lookup, response: \d+ times, and \d+ in the histogram"),
        (in_response(sum_ns=1), r"slices: a sum of \d+ ns, \d+ by the histograms"),
        (in_response(sum_ns=10**12), r"lookup, response: sum \d+, and \d+ to \d+ by the histogram"),
        (in_response(squares=1e18), "lookup, response: sum of squares"),
        (in_response(min_ns=-1000), "lookup, response: least"),
        (in_response(max_ns=10**7), "lookup, response: greatest"),
        (in_response(out_of_range=1), r"lookup: \d+ times of \d+ requests"),
        (lambda document: document["seen"]["load"].update(recorded=5), "recorded 5, and"),
        (lambda document: document["seen"]["load"].update(sending_connections=1), "sending_connections 1, and 2"),
    ],
)
def test_a_record_that_was_sealed_again_does_not_agree_with_itself(
    folder: Path, change: Callable[[Document], None], message: str
) -> None:
    """Who makes a new digest must also change the counts, the sums, the slices, and the requests' own times."""
    number = run_of("figure_4", clients=2)
    edit(folder, number, change, seal=True)
    differences = list(itertools.islice(verify.differences(folder), 4))
    own = [line for line in differences if line.startswith(f"run {RUN_IDS[number - 1]}")]
    assert any(re.search(message, line) for line in own), differences


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("server_cpu_s", "server_cpu_s"),
        ("server_memory_mib", "server_memory_mib"),
        ("server_threads", "server_threads"),
        ("server_connections", "server_connections"),
        ("duration_s", "duration_s"),
    ],
)
def test_a_sealed_number_that_a_row_has_is_found_in_its_cell(folder: Path, name: str, column: str) -> None:
    """With its line and its column."""
    number = run_of("figure_2", clients=1)
    edit(folder, number, lambda document: document["seen"].update({name: document["seen"][name] + 3}), seal=True)
    assert re.match(rf"results\.csv line \d+: .*{column} is", first(folder))


def raw_file(folder: Path, number: int) -> Path:
    return folder / RAW_FOLDER / f"{RUN_IDS[number - 1]}.npz"


def edit_raw(folder: Path, number: int, column: str, place: int, by: int) -> str:
    """Changes one value of a run's own times; gives their digest."""
    raw = load_raw(folder, RUN_IDS[number - 1])
    assert raw is not None
    columns = {field.name: getattr(raw, field.name) for field in dataclasses.fields(raw)}
    values = columns[column] = columns[column].copy()
    match values.dtype:
        case np.bool_:
            values[place] = not values[place]
        case np.uint8:
            values[place] ^= abs(by)
        case _:
            values[place] += by
    np.savez_compressed(raw_file(folder, number), allow_pickle=False, **columns)
    return raw_digest(RawRecords(**columns))


@pytest.mark.slow
def test_one_changed_value_of_the_requests_own_times_is_found_whichever_it_is(
    untouched: Path, folder: Path, rng: random.Random
) -> None:
    """Of any run, column and request, the warm-up's too."""
    with_load = [number for number in range(1, len(RUN_IDS) + 1) if raw_file(folder, number).exists()]
    for column in (field.name for field in dataclasses.fields(RawRecords)):
        number = rng.choice(with_load)
        raw = load_raw(folder, RUN_IDS[number - 1])
        assert raw is not None
        edit_raw(folder, number, column, rng.randrange(len(raw.due_ns)), rng.choice((-1, 1)))
        name = f"{RAW_FOLDER}/{RUN_IDS[number - 1]}.npz is not the one that was written"
        assert first(folder).startswith(f"run {RUN_IDS[number - 1]}, {RAW_FOLDER}: {name}")
        shutil.copy(raw_file(untouched, number), raw_file(folder, number))
    assert not first(folder).startswith("run")


@pytest.mark.parametrize(
    ("part", "column", "message"),
    [
        ("figure_4", "done_ns", "lookup: response times that are not those of the requests kept"),
        ("figure_4", "due_ns", "closed loop that were not due when they were sent"),
        ("figure_4", "connection", "outcomes"),
        ("figure_4", "outcomes", "lookup: outcomes"),
        ("figure_4", "first", "recorded|outcomes|first_calls"),
        ("locks", "outcomes", "outcomes"),
        ("offered_load", "due_ns", "response times"),
        ("offered_load", "sent_ns", "lookup: service times"),
    ],
)
def test_times_that_were_sealed_again_do_not_give_the_record(
    folder: Path, part: str, column: str, message: str
) -> None:
    """Here: of one request in the middle of the run, and both digests made anew."""
    number = run_of(part)
    raw = load_raw(folder, RUN_IDS[number - 1])
    assert raw is not None
    by = {"outcomes": 1, "connection": 1}.get(column, -50_000)
    digest = edit_raw(folder, number, column, len(raw.due_ns) // 2, by)
    edit(folder, number, lambda document: document.update(raw_digest=digest), seal=True)
    assert re.search(message, first(folder)), first(folder)


@pytest.mark.slow
def test_times_that_are_gone_torn_or_of_no_run_are_named(folder: Path) -> None:
    """Each by its file."""
    one, two = run_of("figure_2"), run_of("figure_4")
    torn, gone = min(one, two), max(one, two)
    raw_file(folder, torn).write_bytes(raw_file(folder, torn).read_bytes()[:-50])
    raw_file(folder, gone).rename(folder / RAW_FOLDER / "009-001.npz")
    differences = list(itertools.islice(verify.differences(folder), 3))
    assert re.match(rf"run {RUN_IDS[torn - 1]}, records: records/\S+\.npz cannot be read: BadZipFile", differences[0])
    assert differences[1] == f"run {RUN_IDS[gone - 1]}, records: records/{RUN_IDS[gone - 1]}.npz is not there"
    assert differences[2] == "records/009-001.npz: of no run here"
