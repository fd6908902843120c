"""How long a request may wait, how many the executor is given, and what refusing may cost: by a clock of numbers."""

from stock_service.rpc.server_core.admission import (
    AHEAD_LEAST,
    AHEAD_MS,
    BUDGET_WINDOW_MS,
    BURST_MS,
    FIRST_RATE,
    RAN_MS,
    REFUSED_NS,
    Admission,
)

MS = 1_000_000
START = 1_000 * MS


def test_in_a_burst_a_request_may_wait_for_half_its_clients_time() -> None:
    """And in a queue that was not empty for longer than the interval, for a quarter."""
    admission = Admission(20, 1000)
    admission.emptied(START)
    assert admission.limit_ns(1000, START + 100 * MS) == 500 * MS
    assert admission.limit_ns(1000, START + 101 * MS) == 250 * MS


def test_the_target_is_the_least_that_a_request_may_wait() -> None:
    """But for one whose client waits for less. One that does not say it is taken to wait for four seconds."""
    admission = Admission(20, 1000)
    assert admission.limit_ns(30, START) == 20 * MS
    assert admission.limit_ns(10, START) == 10 * MS
    assert admission.limit_ns(0, START) == 1000 * MS


def test_a_target_of_0_refuses_nothing() -> None:
    """For whoever wants every request to wait."""
    assert Admission(0, 1000).limit_ns(1, START) == 0


def test_a_queue_that_refusing_emptied_still_stands() -> None:
    """Only one that was worked off was a burst; some time without refusals ends it."""
    admission = Admission(20, 1000)
    admission.emptied(START)
    admission.spend(1, 1, START + 150 * MS)
    admission.emptied(START + 200 * MS)
    assert admission.limit_ns(1000, START + 200 * MS) == 250 * MS
    admission.emptied(START + 251 * MS)
    assert admission.limit_ns(1000, START + 251 * MS) == 500 * MS


def test_some_time_after_the_last_refusal_it_has_recovered() -> None:
    """The interval."""
    admission = Admission(20, 1000)
    admission.spend(1, 1, START)
    assert not admission.recovered(START + 100 * MS)
    assert admission.recovered(START + 101 * MS)


def test_an_executor_that_falls_behind_is_given_what_it_soon_begins() -> None:
    """By the rate that was measured while it had tasks waiting; never under the least."""
    admission = Admission(20, 1000)
    assert admission.room(0, 10, START) == FIRST_RATE * AHEAD_MS - 10
    assert admission.room(200, 10, START + 10 * MS) == 20 * AHEAD_MS - 10, "it began twenty a millisecond"
    assert admission.ahead == 20 * AHEAD_MS
    for number in range(1, 9):  # it begins nothing any more
        admission.room(200, 10, START + (10 + 10 * number) * MS)
    assert admission.ahead == AHEAD_LEAST


def test_so_it_is_where_it_ran_all_that_it_was_given() -> None:
    """Though it has nothing waiting whenever it is given more. Until that was measured little is begun at once."""
    admission = Admission(20, 1000)
    assert admission.burst == FIRST_RATE * BURST_MS
    admission.ran(40, 2 * MS)
    assert admission.ahead == 20 * AHEAD_MS
    assert admission.burst == 20 * BURST_MS
    admission.ran(1, RAN_MS * MS - 1)
    assert admission.ahead == 20 * AHEAD_MS, "too short to be measured"
    admission.ran(1, 5 * MS)
    assert admission.ahead == 10 * AHEAD_MS, "one slow moment is not taken for the truth"
    for _ in range(9):
        admission.ran(1, 5 * MS)
    assert admission.ahead == admission.burst == AHEAD_LEAST


def test_an_executor_that_keeps_up_is_given_more_and_more() -> None:
    """Each time that it has nothing left, up to what it takes at all."""
    admission = Admission(20, 1000)
    admission.room(0, 10, START)
    admission.room(10, 10, START + 10 * MS)
    least = admission.ahead
    assert admission.room(20, 0, START + 20 * MS) > least
    for _ in range(100):
        admission.room(20, 0, START + 20 * MS)
    assert admission.ahead > 1000 - 1000 // 4
    assert admission.ahead <= 1000


def test_the_reading_thread_sleeps_for_half_of_what_the_executor_has() -> None:
    """Not at all where it has nothing, and for 20 ms at most."""
    admission = Admission(20, 1000)
    assert admission.pause_s(0) == 0
    admission.room(0, 10, START)
    admission.room(10, 10, START + 10 * MS)  # one a millisecond
    assert admission.pause_s(10) == 0.005
    assert admission.pause_s(1000) == 0.02


def test_refusing_may_take_a_fifth_of_the_time() -> None:
    """Of each window; past that it says until when nothing of those is to be read."""
    admission = Admission(20, 1000)
    assert admission.spend(1, MS, START) == 0
    assert admission.spend(1, 2 * MS, START + 10 * MS) == START + 20 * MS, "it takes as long to read them"
    assert admission.spend(1, MS, START + 21 * MS) == 0, "the next window"


def test_reading_what_is_refused_counts_by_the_request() -> None:
    """Where many are refused at once, that takes longer than to send the refusals."""
    admission = Admission(20, 1000)
    most = BUDGET_WINDOW_MS * MS // 5 // REFUSED_NS
    assert admission.spend(most - 100, 0, START) == 0
    assert admission.spend(101, 0, START) == START + 20 * MS
