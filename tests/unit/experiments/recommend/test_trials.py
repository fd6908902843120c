"""The trials of the advice: what counts as passed, what is tried, and how it is shown."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest

from experiments.capacity import Demands
from experiments.recommend import started, trials
from experiments.recommend.advice import POOLS, Advice, Kind, Size
from experiments.recommend.measured import Measured
from experiments.recommend.seen import Inferred, Load
from experiments.recommend.started import WORKERS, Checked, check_command
from experiments.recommend.trials import Subject, Tried, subjects
from experiments.recommend.words import Seen

TRIED = Tried("a service", ("8 threads",) * 5, 0.97, "8: 100/s", 60.0)
DEMANDS = Demands(gil_s=0.001, free_s=0.0, wait_s=0.0, overhead_s=0.0)
SUBJECT = Subject("a service", "sockets", "serve {workers} {port}")


@pytest.mark.parametrize(
    ("tried", "passed"),
    [
        (TRIED, True),
        (replace(TRIED, advised=("8 threads",) * 4 + ("4 threads",)), False),
        (replace(TRIED, reached=0.89), False),
        (replace(TRIED, reached=1.12), False),
    ],
)
def test_every_run_must_advise_the_same_and_near_the_best(tried: Tried, passed: bool) -> None:
    """Within a tenth; of a server without a pool, on either side of what was expected."""
    assert tried.passed is passed


def test_everything_that_is_tried_can_be_started() -> None:
    """Every command is one that ``--start`` takes, but for those that have no pool."""
    found = subjects()
    assert len({each.name for each in found}) == len(found) >= 5
    for each in found:
        check_command(each.command if WORKERS in each.command else f"{each.command} {WORKERS}")


def advised(workers: int) -> Measured:
    """What ``of_command`` gives, with this pool advised."""
    chosen = Size(workers, 1, 100.0, "gil", 70.0, 0.01)
    load = Load(1, 100.0, 0.01, 0.0, 0.02, None, 0.1)
    return Measured(DEMANDS, Advice(Kind.THREADS, chosen, (chosen,), True, None, ()), Seen((load,)))


def test_the_sweep_judges_the_worst_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here 4 threads, advised once, do 70 of the 100 that 64 do."""
    given = iter([8, 4, 8])
    monkeypatch.setattr(trials, "of_command", lambda *_: advised(next(given)))

    def sweep(_: str, sizes: Sequence[int], *__: object) -> dict[int, Checked]:
        return {size: Checked(size, ({4: 70.0, 64: 100.0}.get(size, 95.0),)) for size in sizes}

    monkeypatch.setattr(started, "checked", sweep)
    found = trials.tried(SUBJECT, 3, lambda _: None)
    assert found.advised == ("8 threads", "4 threads", "8 threads")
    assert found.reached == pytest.approx(0.7)
    assert found.best.count("/s") == len(POOLS)


@pytest.mark.parametrize("did_hz", [50.0, 100.0])
def test_without_a_pool_to_choose_both_are_beside_the_load(monkeypatch: pytest.MonkeyPatch, did_hz: float) -> None:
    """100/s are expected of both cores, and half of that was seen beside the load. So 50/s are as it says."""
    seen = Seen((Load(1, 50.0, 0.01, 0.0, 0.02, None, 0.1),), Inferred(DEMANDS, 50.0, None, 0.0, 0.5, False))
    monkeypatch.setattr(started, "serving", lambda *_: nullcontext(("127.0.0.1", 1)))
    monkeypatch.setattr(Subject, "asked", lambda *_: None)
    monkeypatch.setattr(trials, "of_running", lambda *_: replace(advised(8), seen=seen))
    monkeypatch.setattr(trials, "ask", lambda *_: ((replace(seen.loads[0], throughput_hz=did_hz),), 0.5))
    found = trials.tried(replace(SUBJECT, command="serve {port}"), 2, lambda _: None)
    assert found.reached == pytest.approx(50.0 / did_hz)
    assert found.passed is (did_hz == 50.0)


def test_an_advice_is_judged_by_what_is_seen_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine does 50/s around the first advice and half of that around the second, which expects 25/s."""
    rates_hz = iter([50.0, 25.0])
    hz = 0.0

    def fresh(*_: object) -> nullcontext[tuple[str, int]]:
        nonlocal hz
        hz = next(rates_hz)
        return nullcontext(("127.0.0.1", 1))

    def running(*_: object) -> Measured:
        inferred = Inferred(DEMANDS, hz, None, 0.0, hz / 100, False)
        return replace(advised(8), seen=Seen((Load(1, hz, 0.01, 0.0, 0.02, None, 0.1),), inferred))

    monkeypatch.setattr(started, "serving", fresh)
    monkeypatch.setattr(Subject, "asked", lambda *_: None)
    monkeypatch.setattr(trials, "of_running", running)
    loads = [Load(on, 0.0, 0.01, 0.0, 0.02, None, 0.1) for on in (1, 16, 128)]
    monkeypatch.setattr(
        trials,
        "ask",
        lambda *_: ([replace(load, throughput_hz=hz * min(1, load.connections / 16)) for load in loads], 0.5),
    )
    found = trials.tried(replace(SUBJECT, command="serve {port}"), 2, lambda _: None)
    assert found.reached == pytest.approx(1.0)
    assert found.best == "37.5/s"


def test_the_page_names_the_machine_and_every_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row each, failures said."""
    monkeypatch.setattr(trials, "subjects", lambda: (SUBJECT, SUBJECT))
    results = iter([TRIED, replace(TRIED, reached=0.5)])
    monkeypatch.setattr(trials, "tried", lambda *_: next(results))
    lines = list(trials.run(5, lambda _: None))
    assert "commit" in lines[1]
    assert [line.count("**passed**") for line in lines[-2:]] == [1, 0]
    assert "| a service | 8 threads (5×) | 50 % | 8: 100/s | 60 s | **FAILED** |" in lines[-1]
