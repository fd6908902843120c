"""``verify``: a folder that is what its runs give, and the same folder with something changed in it, anywhere."""

import dataclasses
import gzip
import itertools
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments import environment, gallery, report, verify
from experiments.environment import ENVIRONMENT_FILE
from experiments.results import COLUMNS, RESULTS_FILE
from experiments.run_records import RUNS_FILE
from experiments.runner import DESIGN_FILE
from tests.unit.experiments.edited_folder import (
    RUN_IDS,
    documents_of,
    first,
    found,
    keep,
    other,
    sealed,
)


@pytest.mark.slow
def test_a_folder_that_nobody_touched_verifies(folder: Path) -> None:
    """With requests' own times, without them, and without a page; it is not written to."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found(folder) == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    (folder / report.HTML).unlink()
    assert found(folder) == []


@pytest.mark.slow
def test_a_sweep_that_has_not_ended_verifies(folder: Path, tmp_path: Path) -> None:
    """What is not done yet is no difference."""
    part = tmp_path / "part"
    part.mkdir()
    shutil.copy(folder / DESIGN_FILE, part)
    environment.save(dataclasses.replace(environment.load(folder), after=None), part)
    keep(part, [document | {"raw_digest": None} for document in documents_of(folder)[:5]])
    keep(part, [sealed(document) for document in documents_of(part)])
    kept = {document["run"]["run_id"] for document in documents_of(part)}
    lines = (folder / RESULTS_FILE).read_text().splitlines(keepends=True)
    own = [line for line in lines[1:] if line.split(",")[COLUMNS.index("run_id")] in kept]
    (part / RESULTS_FILE).write_text(lines[0] + "".join(own))
    gallery.draw(part)
    report.write(part)
    assert found(part) == []


@pytest.mark.slow
def test_one_changed_cell_of_the_results_is_found_whichever_it_is(folder: Path, rng: random.Random) -> None:
    """Every column, in lines chosen at random, one cell in each: that line, that column, both values, nothing else."""
    file = folder / RESULTS_FILE
    right = [line.split(",") for line in file.read_text().replace('"', "").splitlines()]
    plain = [number for number, cells in enumerate(right) if number and len(cells) == len(COLUMNS)]
    columns = list(range(len(COLUMNS)))
    rng.shuffle(columns)
    while columns:
        changed: dict[int, tuple[str, str, str]] = {}
        lines = file.read_text().splitlines(keepends=True)
        for number in rng.sample(plain, min(len(plain), len(columns))):
            column, cells = columns.pop(), list(right[number])
            cells[column] = other(cells[column], rng)
            changed[number + 1] = COLUMNS[column], cells[column], right[number][column]
            lines[number] = ",".join(cells) + "\n"
        copy = shutil.copytree(folder, folder.with_name(f"changed-{len(columns)}"))
        (copy / RESULTS_FILE).write_text("".join(lines))
        should = [
            f'{RESULTS_FILE} line {number}: {name} is "{new}", and "{old}" by the run'
            for number, (name, new, old) in sorted(changed.items())
        ]
        assert list(itertools.islice(verify.differences(copy), len(should))) == should


@pytest.mark.slow
def test_an_edited_cell_is_one_difference_and_not_one_of_all_that_is_drawn(folder: Path) -> None:
    """Figures and report are those of the runs, and right."""
    file = folder / RESULTS_FILE
    file.write_text(file.read_text().replace(",sockets,", ",pockets,", 1))
    (difference,) = found(folder)
    assert re.match(r'results\.csv line \d+: transport is "pockets", and "sockets" by the run$', difference)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: data.rindex(b"\n", 0, -1) + 1], "lines, "),
        (lambda data: data + data[data.rindex(b"\n", 0, -1) + 1 :], "lines, "),
        (lambda data: data[:-40], "cells, "),
        (lambda data: data[:-1], "not as the runner writes them"),
        (lambda data: data.replace(b"\n", b"\r\n"), "not as the runner writes them"),
        (lambda data: data.replace(b"sockets", b'"sockets"', 1), "not as the runner writes them"),
        (lambda data: data.replace(b"sockets", b"s\xff", 1), r"transport is \"s\\\\xff\""),
        (lambda data: data.replace(b"sockets", b"s\0", 1), "results.csv"),
        (lambda data: data.replace(b"study,", b"studio,", 1), "line 1: not the columns that rows have"),
        (lambda _: b"", "line 1: not the columns that rows have"),
        (lambda data: b'"' + data, "results.csv"),
    ],
)
def test_results_that_are_not_the_runs_in_any_other_way_are_found(
    folder: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    """Lines too few, too many or torn; other line ends, quotes, bytes or columns; nothing at all."""
    file = folder / RESULTS_FILE
    file.write_bytes(change(file.read_bytes()))
    assert re.search(message, first(folder))


@pytest.mark.slow
def test_any_number_and_any_word_of_the_report_is_found(folder: Path, rng: random.Random) -> None:
    """One digit changed in every line that has one, then one letter in every line: each line is named, and no other."""
    file = folder / report.MARKDOWN
    right = file.read_text()
    for signs in (str.isdigit, str.isalpha):
        lines = right.splitlines()
        changed = []
        for number, line in enumerate(lines, start=1):
            places = [place for place, sign in enumerate(line) if signs(sign)]
            if places:
                place = rng.choice(places)
                lines[number - 1] = line[:place] + ("7" if line[place] != "7" else "3") + line[place + 1 :]
                changed.append(number)
        file.write_text("\n".join(lines) + "\n")
        differences = found(folder)
        assert len(changed) > 20
        assert [int(re.findall(r"report\.md line (\d+): has ", line)[0]) for line in differences] == changed


@pytest.mark.slow
def test_a_changed_figure_page_or_line_is_found_with_its_name(folder: Path, rng: random.Random) -> None:
    """One digit of a figure, a figure that is gone, one that no run gives, a digit of the page, a line too many."""
    changed, gone, more = (folder / gallery.FOLDER / f"{name}.svg" for name in ("figure_2", "figure_4", "figure_9"))
    shutil.copy(gone, more)
    gone.unlink()
    changed.write_text(other(changed.read_text(), rng))
    page, text = folder / report.HTML, folder / report.MARKDOWN
    page.write_text(page.read_text().replace("</p>", "!</p>", 1))
    text.write_text(text.read_text() + "\n")
    names = ("figure_2.svg line ", "figure_4.svg: not there", "figure_9.svg: no run gives it")
    should = [*(f"{gallery.FOLDER}/{name}" for name in names), f"{report.MARKDOWN}: ", f"{report.HTML} line "]
    differences = found(folder)
    assert len(differences) == len(should)
    assert all(line.startswith(start) for line, start in zip(differences, should, strict=True))
    text.unlink()
    assert [line for line in found(folder) if line.startswith(report.MARKDOWN)] == [
        f"{report.MARKDOWN}: not there; python -m experiments report writes it"
    ]


@pytest.mark.slow
def test_where_another_matplotlib_drew_the_figures_the_rest_is_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """Their bytes would differ; the report's words must not, nor the page's, and its figures are those of the files."""
    monkeypatch.setattr(verify, "version", lambda _: "0.1")
    drew = environment.load(folder).packages["matplotlib"]
    assert verify.not_compared(folder) == f"the figures, which matplotlib {drew} drew, and here is 0.1"
    changed, gone, more = (folder / gallery.FOLDER / f"{name}.svg" for name in ("figure_2", "figure_4", "figure_9"))
    drawn_otherwise = changed.read_text().replace("<svg ", "<svg  ", 1)
    changed.write_text(drawn_otherwise)
    report.write(folder)
    assert found(folder) == []
    changed.write_text(other(drawn_otherwise, rng))
    (difference,) = found(folder)
    assert difference.startswith(f"{report.HTML} line ")
    changed.write_text(drawn_otherwise)
    shutil.copy(gone, more)
    gone.unlink()
    (folder / report.HTML).write_text("nonsense\n")
    names = (f"{gallery.FOLDER}/figure_4.svg: not there", f"{gallery.FOLDER}/figure_9.svg: no run gives it")
    assert found(folder)[:2] == list(names)
    assert any(line.startswith(f"{report.HTML}: ") for line in found(folder))


@pytest.mark.slow
def test_another_environment_is_found_though_nothing_is_computed_from_it(folder: Path, rng: random.Random) -> None:
    """One value of it, whichever, but for how busy the machine was afterwards; its line breaks are nothing."""
    file = folder / ENVIRONMENT_FILE
    text = file.read_text()
    right = json.loads(text)
    of_all = f"{len(RUN_IDS)} of {len(RUN_IDS)} runs have another's digest"
    paths = [(name,) for name in right] + [(part, name) for part in ("packages", "before") for name in right[part]]
    for path in paths:
        changed = json.loads(text)
        values = changed if len(path) == 1 else changed[path[0]]
        match values[path[-1]]:
            case dict():
                continue
            case str() as old:
                values[path[-1]] = other(old, rng)
            case old:
                values[path[-1]] = not old
        file.write_text(json.dumps(changed, indent=2))
        assert first(folder) == f"{ENVIRONMENT_FILE}: not the one that was written: {of_all}", path
    file.write_text(json.dumps(right))
    assert not first(folder).startswith(ENVIRONMENT_FILE)


def test_blocks_that_are_gone_from_design_and_runs_are_found(folder: Path) -> None:
    """The runs that are left say that the design was another."""
    blocks = max(document["run"]["block"] for document in documents_of(folder))
    file = folder / DESIGN_FILE
    file.write_text(file.read_text().replace(f'"blocks": {blocks},', f'"blocks": {blocks - 1},'))
    kept = [document for document in documents_of(folder) if document["run"]["block"] < blocks]
    keep(folder, kept)
    of_all = f"{len(kept)} of {len(kept)} runs have another's digest"
    assert first(folder) == f"{DESIGN_FILE}: not the one that was written: {of_all}"


@pytest.mark.slow
def test_runs_without_digests_of_design_and_environment_verify_without_them(folder: Path) -> None:
    """As older ones have none: nothing is said of what nobody wrote down."""
    older = [{name: of for name, of in document.items() if name != "belongs_to"} for document in documents_of(folder)]
    keep(folder, [sealed(document) for document in older])
    seen = environment.load(folder)
    environment.save(dataclasses.replace(seen, kernel="Linux 2.4"), folder)
    assert not first(folder).startswith((ENVIRONMENT_FILE, "run"))


def test_a_run_that_is_gone_is_named(folder: Path) -> None:
    """From the middle and from the end; where the sweep has not ended, from the middle."""
    documents = documents_of(folder)
    for gone in (len(documents) - 1, 6):
        keep(folder, documents[:gone] + documents[gone + 1 :])
        assert first(folder) == f"{RUNS_FILE}: run {RUN_IDS[gone]} of {DESIGN_FILE} is not there"
    environment.save(dataclasses.replace(environment.load(folder), after=None), folder)
    assert first(folder) == f"{RUNS_FILE}: run {RUN_IDS[6]} of {DESIGN_FILE} is not there"


def test_two_runs_that_changed_places_are_named(folder: Path) -> None:
    """As are one that is there twice, and one of another sweep."""
    documents = documents_of(folder)
    keep(folder, [*documents[:3], documents[4], documents[3], *documents[5:]])
    should = f"line 5: run {RUN_IDS[3]} comes after {RUN_IDS[4]}, not before as planned"
    assert first(folder) == f"{RUNS_FILE} {should}"
    keep(folder, [*documents, documents[3]])
    assert first(folder) == f"{RUNS_FILE} line {len(documents) + 1}: run {RUN_IDS[3]} is there twice"
    keep(folder, [sealed(documents[0] | {"study": "server_cost"}), *documents[1:]])
    assert first(folder) == f"{RUNS_FILE} line 1: run {RUN_IDS[0]} of study server_cost is none of {DESIGN_FILE}"
    swapped = documents[3] | {"run": documents[4]["run"]}, documents[4] | {"run": documents[3]["run"]}
    keep(folder, [*documents[:3], *map(sealed, swapped), *documents[5:]])
    assert "comes after" in first(folder)


@pytest.mark.slow
def test_another_design_is_found(folder: Path, rng: random.Random) -> None:
    """One digit or one letter of it, wherever."""
    file = folder / DESIGN_FILE
    right = file.read_text()
    lines = right.splitlines(keepends=True)
    for number in rng.sample([n for n, line in enumerate(lines) if any(sign.isalnum() for sign in line)], 25):
        changed = other(lines[number], rng)
        file.write_text("".join([*lines[:number], changed, *lines[number + 1 :]]))
        assert DESIGN_FILE in first(folder), changed
    file.write_text(right + "\n")
    assert DESIGN_FILE in first(folder)
    file.unlink()
    assert first(folder) == f"{DESIGN_FILE}: not there, so that nothing says what should have been run"


def test_a_torn_last_run_is_named_with_what_drops_it(folder: Path) -> None:
    """The runs before it are compared all the same."""
    file = folder / RUNS_FILE
    data = file.read_bytes()
    last = len(gzip.compress(gzip.decompress(data).splitlines(keepends=True)[-1], mtime=0))
    file.write_bytes(data[:-10])
    differences = list(itertools.islice(verify.differences(folder), 2))
    assert (
        differences[0]
        == f"{RUNS_FILE}: its last {last - 10:,} bytes are no whole run, as after a crash; --resume drops them"
    )
    assert differences[1] == f"{RUNS_FILE}: run {RUN_IDS[-1]} of {DESIGN_FILE} is not there"


def test_nothing_to_verify_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    """No folder, no runs, none that is whole, or something else by their name."""
    for where in (tmp_path / "nowhere", tmp_path):
        assert "\n" not in first(where)
        assert RUNS_FILE in first(where)
    (folder / RUNS_FILE).write_bytes(b"")
    assert "no whole run" in first(folder)
    (folder / RUNS_FILE).write_bytes(b"hello\n" * 100)
    assert "no whole run" in first(folder)


@pytest.mark.slow
def test_missing_files_are_a_line_each(folder: Path) -> None:
    """Whichever can be missing with the runs still there."""
    for name in (RESULTS_FILE, ENVIRONMENT_FILE, report.MARKDOWN, DESIGN_FILE):
        (folder / name).unlink()
    shutil.rmtree(folder / gallery.FOLDER)
    differences = found(folder)
    for name in (RESULTS_FILE, ENVIRONMENT_FILE, report.MARKDOWN, DESIGN_FILE, "figures/figure_2.svg"):
        assert sum(line.startswith(f"{name}: not there") for line in differences) == 1


def test_a_line_that_differs_is_quoted_from_the_beginning_of_a_word() -> None:
    """Where it has words; and the place itself is in what is quoted."""
    line = "| Lookup, 1 client: sockets ÷ gRPC | **INCONCLUSIVE**, refused by gate 14 |"
    said = verify._differs(line, line.replace("14", "15"))
    assert said.startswith('has "| **INCONCLUSIVE**, refused by gate 14 |", and "')
    assert verify._differs("x" * 300 + "a", "x" * 300 + "b") == f'has "{"x" * 40}a", and "{"x" * 40}b" by the results'
