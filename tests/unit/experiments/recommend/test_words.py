"""An advice in words: what was measured is said, ranges where the machine was busy, and nothing that does not hold."""

from dataclasses import replace

import pytest

from experiments.capacity import Demands
from experiments.recommend.advice import Advice, Kind, Size, Wish
from experiments.recommend.seen import Inferred, Load
from experiments.recommend.started import Checked
from experiments.recommend.words import Seen, errors, pictured, sentences, table

MS = 0.001
DEMANDS = Demands(gil_s=0.2 * MS, free_s=0.1 * MS, wait_s=10 * MS, overhead_s=0.1 * MS)
WISH = Wish(cores=2, rate_hz=500, target_p99_s=0.030)
POOLS = tuple(
    Size(workers, 1, highest_hz, "workers", 500, p99_s)
    for workers, highest_hz, p99_s in ((4, 400.0, float("inf")), (8, 800.0, 0.016), (16, 1600.0, 0.014))
)
ADVICE = Advice(Kind.THREADS, POOLS[1], POOLS, True, 700.0, (("requests waited half as long", "4 threads"),))
LOAD = Load(1, 100.0, 0.010, 0.001, 0.020, 0.3 * MS, 0.1)
INFERRED = Inferred(DEMANDS, 390.0, pool=4, error=0.04, reached=0.97, client_limited=False)


def said(advice: Advice = ADVICE, seen: Seen = Seen(), demands: Demands = DEMANDS, wish: Wish = WISH) -> str:  # noqa: B008
    """All sentences, a line each."""
    return "\n".join(sentences(demands, wish, advice, seen))


def test_a_described_service() -> None:
    """The advice, what it is made of, what to expect, and what would change it."""
    told = said()
    assert told.startswith("Advice: 8 threads, in one process.\nA request takes 200 µs of processor time with the GIL")
    assert "Expect up to 800/s, within 25 %. The limit is the workers" in told
    assert "At 500/s, 99 of 100 replies come within 16.0 ms, within 25 %." in told
    assert "A p99 of 30.0 ms is kept up to about 700/s." in told
    assert "16 threads would raise the highest rate by 100 %." in told
    assert told.endswith("If requests waited half as long: 4 threads.")
    assert "measured" not in told.lower()


def test_a_running_server() -> None:
    """What it does now, and how many requests it works at once."""
    told = said(seen=Seen((LOAD,), INFERRED, tail=LOAD, tail_rate_hz=273.0, tail_predicted_s=0.016))
    assert "The server works at about 4 requests at once, and no more" in told
    assert "Measured as it runs now: up to 390/s." in told
    assert "Expect up to 800/s, within 30 %." in told
    assert "So many workers were not seen yet: --start checks them." in told
    assert "At 273/s a p99 of 20.0 ms was measured, and 16.0 ms predicted." in told


def test_a_busy_machine_makes_a_range() -> None:
    """What is expected is said with and without what else runs."""
    told = said(seen=Seen((LOAD,), replace(INFERRED, reached=0.5)))
    assert "Expect up to 400/s beside our load and all else that runs here, and 800/s where it has 2 cores" in told


def test_a_check_counts_more_than_what_was_inferred() -> None:
    """The advised size itself did what is predicted, so there is no range."""
    checked = (Checked(4, (380.0,)), Checked(8, (790.0,)), Checked(16, (1500.0,)))
    told = said(seen=Seen((LOAD,), replace(INFERRED, reached=0.5), checked, before_check=4))
    assert "Expect up to 800/s, within 25 %." in told
    assert "workers and what they did at most: 4: 380/s, 8: 790/s, 16: 1,500/s." in told
    assert "The prediction was 4 workers; the check found better." in told


def test_a_tail_far_off_is_said_to_need_the_machine() -> None:
    """A p99 that was measured at three times the predicted one has no error in per cent."""
    seen = Seen((LOAD,), INFERRED, tail=replace(LOAD, p99_s=0.048), tail_rate_hz=273.0, tail_predicted_s=0.016)
    assert errors(ADVICE.chosen, seen)[1] == pytest.approx(2.0)
    assert "within 16.0 ms, if it has the cores to itself." in said(seen=seen)


def test_what_is_not_carried_is_said() -> None:
    """With what is safe; and a target that nothing keeps."""
    over = said(replace(ADVICE, carried=False), wish=replace(WISH, rate_hz=900))
    assert "This does not carry 900/s on 2 cores: 640/s is as much as is safe." in over
    missed = said(replace(ADVICE, carried=False, highest_in_target_hz=0.0), wish=replace(WISH, target_p99_s=0.012))
    assert "This misses the wished p99 of 12.0 ms" in missed
    assert "A p99 of 12.0 ms is kept at no rate." in missed


def test_asyncio_and_processes_are_said_as_they_are() -> None:
    """What they ask for stands beside."""
    assert said(replace(ADVICE, kind=Kind.ASYNCIO)).startswith("Advice: asyncio, in one process.")
    several = replace(ADVICE, kind=Kind.PROCESSES, chosen=replace(POOLS[1], processes=2))
    assert said(several).startswith("Advice: 2 processes, each with 8 threads.")


def test_a_program_without_a_gil_hears_nothing_of_it() -> None:
    """Nor of asyncio."""
    told = said(demands=replace(DEMANDS, gil_s=0))
    assert "GIL" not in told
    assert "asyncio" not in told


def test_the_table_marks_the_advised_pool() -> None:
    """And says which pools are too slow."""
    lines = list(table(ADVICE))
    assert [line for line in lines if line.endswith("advised")] == [lines[2]]
    assert "too slow" in lines[1]


@pytest.mark.slow
def test_the_figure_has_what_was_measured() -> None:
    """The pool that was seen, and the advised one."""
    words = pictured(DEMANDS, WISH, ADVICE, Seen((LOAD,), INFERRED)).alternative
    assert "The same, measured: 4: 390." in words
    checked = Seen((LOAD,), INFERRED, (Checked(8, (790.0,)),), tail=LOAD, tail_rate_hz=273.0)
    assert "The same, measured: 273: 20.0." in pictured(DEMANDS, WISH, ADVICE, checked).alternative
    asyncio = replace(ADVICE, kind=Kind.ASYNCIO)
    assert "273" not in pictured(DEMANDS, WISH, asyncio, checked).alternative
    assert "Advised: 8 threads." in words
