"""Advice in words: the measurements, ranges on a busy machine, and only true statements."""

from dataclasses import replace

import pytest

from experiments.design.demands import Demands
from experiments.recommend.advice import Advice, Kind, Size, Wish
from experiments.recommend.seen import Found, Level, Limit, Load, Tail
from experiments.recommend.words import (
    measured_picture,
    measured_sentences,
    measured_table,
    pictured,
    sentences,
    table,
)

pytestmark = pytest.mark.usefixtures("short_simulations")

MS = 0.001
DEMANDS = Demands(gil_s=0.2 * MS, free_s=0.1 * MS, wait_s=10 * MS, overhead_s=0.1 * MS)
WISH = Wish(cores=2, rate_hz=500, target_p99_s=0.030)
POOLS = tuple(
    Size(workers, 1, highest_hz, "workers", 500, p99_s)
    for workers, highest_hz, p99_s in ((4, 400.0, float("inf")), (8, 800.0, 0.016), (16, 1600.0, 0.014))
)
ADVICE = Advice(Kind.THREADS, POOLS[1], POOLS, True, 700.0, (("requests waited half as long", "4 threads"),))

LEVELS = tuple(Level(size, (Load(128, hz, 0.1, 0.2 * MS, 0.1),)) for size, hz in ((4, 200.0), (8, 250.0), (16, 251.0)))
FOUND = Found(8, 1, True, LEVELS, 250.0, Limit.INSIDE, 5.0, 20 * MS, 0.2 * MS, (Tail(8, 175.0, 0.136),))


def said(advice: Advice = ADVICE, demands: Demands = DEMANDS, wish: Wish = WISH) -> str:
    """All sentences on a described service, a line each."""
    return "\n".join(sentences(demands, wish, advice))


def told(found: Found = FOUND, wish: Wish = Wish(2)) -> str:  # noqa: B008
    """All sentences on a server that was measured, a line each."""
    return "\n".join(measured_sentences(wish, found))


def test_a_described_service() -> None:
    """A described service has the advice, its basis, the expected times, and the changes that would change it."""
    told, near_its_highest = said(), replace(POOLS[1], rate_hz=700)
    assert told.startswith("Advice: 8 threads, in one process.\nA request takes 200 µs of processor time with the GIL")
    assert "Expect up to 800/s, with an error up to 30 %. The limit is the workers" in told
    assert "At 500/s, 99 of 100 replies come within 16.0 ms, with an error up to 35 %." in told
    assert "within 16.0 ms, by a less exact model." in said(advice=replace(ADVICE, chosen=near_its_highest))
    assert "A p99 of 30.0 ms is kept up to about 700/s." in told
    assert "16 threads would raise the highest rate by 100 %." in told
    assert told.endswith("If requests waited half as long: 4 threads.")
    assert "measured" not in told.lower()


def test_what_was_measured_comes_first() -> None:
    """The first lines are the advice, the rates of all pools, and the rate of the advised pool. The limit and the p99
    follow."""
    lines = told().splitlines()
    assert lines[:3] == [
        "Advice: 8 threads, in one process.",
        "Highest measured rates in one process, by workers: 4: 200/s, 8: 250/s, 16: 251/s.",
        "Expect up to 250/s, with an error up to 15 %, while the load runs on this machine.",
    ]
    assert "At 175/s (70 % of the highest rate), 99 of 100 replies came within 136 ms." in lines
    assert "A single request takes 20.0 ms, and 200 µs of processor time under load." in lines


def test_a_pool_that_was_chosen_for_its_p99_says_so() -> None:
    """The answer has the reason for a larger pool: smaller pools carry the rate with a longer p99."""
    reason = "8 threads are advised, since the p99 of smaller pools is over 25 % longer."
    both = (Tail(4, 175.0, 0.236), Tail(8, 175.0, 0.136))
    assert reason in told(replace(FOUND, tails=both), Wish(2, rate_hz=175.0))
    assert reason not in told()


def test_what_a_larger_pool_does_more_is_said() -> None:
    """The gain of a larger pool is stated, also where it counts as the same. A gain that is worth a larger pool is
    not."""
    assert "With 16 workers the rate was 0.4 % higher; a rate within 10 % of the best counts as equal." in told()
    near, far = (replace(ADVICE, pools=(replace(ADVICE.chosen, workers=64, highest_hz=rate),)) for rate in (830, 880))
    assert "the highest rate by 3.75 %; a rate within 5 % of the best counts as equal." in said(near)
    assert "64 threads would raise the highest rate by 10 %." in said(far)


def test_a_cap_is_named() -> None:
    """One request at a time means a lock. Several at a time mean a pool of connections, or a lock for a part of the
    time."""
    five = "The server admits 5 requests at a time, 19.9 ms each: a pool of connections, or a lock held for 3.98 ms."
    assert five in told()
    one = "The server serializes requests, 3.98 ms each: a lock, or one connection that all share."
    assert one in told(replace(FOUND, at_a_time=1.2))


def test_a_running_server_may_be_held_back_by_its_own_pool() -> None:
    """For a running server the advice names the server's own pool as a possible limit, and the option that finds
    out."""
    lines = told(replace(FOUND, by_workers=False))
    assert "19.9 ms each: its pool of workers, a pool of connections, or a lock" in lines
    assert "ran with its own number of workers, which may be the limit: --start measures every pool." in lines


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (Limit.CLIENT, "Our client was at its limit"),
        (Limit.CORES, "all cores are busy"),
        (Limit.GIL, "The limit is the GIL"),
        (Limit.WORKERS, "The rate grew up to the largest number tried, 16. More threads may raise the rate, and so"),
        (Limit.UNREAD, "The server's processor time cannot be read here"),
    ],
)
def test_every_limit_has_its_words(limit: Limit, words: str) -> None:
    """Every limit has one or two sentences."""
    assert words in told(replace(FOUND, limit=limit))


def test_a_wish_that_was_not_kept_is_said() -> None:
    """A wished rate over 80 % of the highest rate is named, and a p99 over the wished p99."""
    assert "This server does not carry 240/s on 2 cores. Up to 200/s is safe." in told(wish=Wish(2, rate_hz=240))
    assert "The wished p99 of 100 ms was not kept." in told(wish=Wish(2, target_p99_s=0.1))
    assert "not kept" not in told(wish=Wish(2, target_p99_s=0.2))


def test_windows_beside_other_programs_are_said() -> None:
    """Windows beside other programs are stated first, so that the reader measures again. No error is promised then."""
    disturbed = Level(32, (replace(LEVELS[0].rounds[0], is_disturbed=True),))
    lines = told(replace(FOUND, levels=(*LEVELS, disturbed))).splitlines()
    assert lines[1].startswith("Other programs took the cores in 1 of 4 windows")
    assert "Expect up to 250/s, with an unknown error, while the load runs on this machine." in lines


def test_what_is_not_carried_is_said() -> None:
    """A rate that is not carried is stated with a safe one, and so is a target that no pool keeps."""
    over = said(replace(ADVICE, carried=False), wish=replace(WISH, rate_hz=900))
    assert "This server does not carry 900/s on 2 cores. Up to 640/s is safe." in over
    missed = said(replace(ADVICE, carried=False, highest_in_target_hz=0.0), wish=replace(WISH, target_p99_s=0.012))
    assert "The wished p99 of 12.0 ms is not kept" in missed
    assert "No rate keeps a p99 of 12.0 ms." in missed


def test_asyncio_and_processes_are_said_as_they_are() -> None:
    """Asyncio and processes are named in the advice."""
    assert said(replace(ADVICE, kind=Kind.ASYNCIO)).startswith("Advice: asyncio, in one process.")
    several = replace(ADVICE, kind=Kind.PROCESSES, chosen=replace(POOLS[1], processes=2))
    assert said(several).startswith("Advice: 2 processes, each with 8 threads.")


def test_a_program_without_a_gil_hears_nothing_of_it() -> None:
    """A program without a GIL has no words on the GIL or asyncio."""
    told = said(demands=replace(DEMANDS, gil_s=0))
    assert "GIL" not in told
    assert "asyncio" not in told


def test_the_table_marks_the_advised_pool() -> None:
    """The table marks the advised pool, and pools that are too slow."""
    lines = list(table(ADVICE))
    assert [line for line in lines if line.endswith("advised")] == [lines[2]]
    assert "too slow" in lines[1]


def test_the_measured_table_has_every_level() -> None:
    """The measured table has every level with its share of the best. A server on another machine has no busy cores."""
    lines = list(measured_table(FOUND))
    assert [line for line in lines if line.endswith("advised")] == [lines[2]]
    assert lines[1].split() == ["4", "200/s", "79.7", "%", "0.04"]
    unread = Level(4, (replace(LEVELS[0].rounds[0], processor_s=None),))
    assert list(measured_table(replace(FOUND, levels=(unread,))))[1].endswith("unread")


@pytest.mark.slow
def test_a_figure_is_predicted_or_measured() -> None:
    """The words of the figure have the advised pool, and every point."""
    words = pictured(DEMANDS, WISH, ADVICE).alternative
    assert "Replies a second at most, by workers, predicted: 4: 400; 8: 800; 16: 1,600." in words
    assert "Advised: 8 threads." in words
    words = measured_picture(WISH, FOUND).alternative
    assert "Replies a second at most, by workers, measured: 4: 200; 8: 250; 16: 251." in words
    assert "p99 in ms by requests a second, measured: 175: 136." in words
    assert "by connections" in measured_picture(WISH, replace(FOUND, by_workers=False)).alternative
    assert measured_picture(WISH, FOUND).draw().get_axes()
