"""Limits on waits, and the number of tasks that the executor is given: by a clock of numbers."""

from stock_service.rpc.server_core.admission import (
    AHEAD_LEAST,
    AHEAD_MS,
    BURST_MS,
    FIRST_RATE,
    MEASURED_MS,
    RAN_MS,
    Ahead,
    DelayTarget,
)

MS = 1_000_000
START = 1_000 * MS


def test_in_a_burst_a_request_may_wait_for_a_third_of_its_clients_time() -> None:
    """In a burst a request may wait for a third of its client's time. In a queue that was not empty for longer than the
    interval it may wait for a quarter."""
    delay = DelayTarget(20)
    delay.emptied(START)
    assert delay.limit_ns(900, START + 100 * MS) == 300 * MS
    assert delay.limit_ns(1000, START + 101 * MS) == 250 * MS


def test_the_target_is_the_least_that_a_request_may_wait() -> None:
    """The target is the least wait that is allowed, unless the client waits for less. A client without a time counts as
    waiting for four seconds. A target of 0 refuses nothing."""
    delay = DelayTarget(20)
    assert delay.limit_ns(30, START) == 20 * MS
    assert delay.limit_ns(10, START) == 10 * MS
    assert delay.limit_ns(0, START) == 1000 * MS
    assert DelayTarget(0).limit_ns(1, START) == 0


def test_a_queue_that_refusing_emptied_still_stands() -> None:
    """A queue that was emptied by refusals still stands. Only one that was worked off was a burst. Some time without
    refusals ends it."""
    delay = DelayTarget(20)
    delay.emptied(START)
    delay.refused(START + 150 * MS)
    assert [delay.recovered(START + past_ms * MS) for past_ms in (250, 251)] == [False, True]
    delay.emptied(START + 200 * MS)
    assert delay.limit_ns(1000, START + 200 * MS) == 250 * MS
    delay.emptied(START + 251 * MS)
    assert delay.limit_ns(900, START + 251 * MS) == 300 * MS


def test_an_executor_that_falls_behind_is_given_tasks_that_last_it_for_a_while() -> None:
    """An executor that falls behind gets tasks for a while, by the rate at which it ended tasks, and one task more for
    each thread, which may wait."""
    ahead = Ahead(8, 1000)
    assert ahead.room(0, 10, START, 0, 0) == 8 + FIRST_RATE * AHEAD_MS - 10
    assert ahead.room(400, 10, START + 20 * MS, 0, 0) == 8 + 20 * AHEAD_MS - 10, "it ended twenty a millisecond"
    assert ahead.tasks == 20 * AHEAD_MS
    for number in range(1, 9):  # it ends nothing any more
        ahead.room(400, 10, START + (20 + 20 * number) * MS, 0, 0)
    assert ahead.tasks == AHEAD_LEAST
    assert ahead.room(400, 10, START + 185 * MS, 0, 0) == 8 + 8 - 10


def given(
    ahead: Ahead, share: float, ended: int, reading: float = 0.1, start_ns: int = START, under_way: int = 1
) -> int:
    """Measures 25 times an executor that computes a share of the time, and ends this number of tasks in 2 ms. Gives the
    allowed number of tasks under way."""
    at_ns = start_ns
    for number in range(25):
        past_ns = number * MEASURED_MS * MS
        at_ns = start_ns + past_ns
        cpu_ns, ended_by_then = int((share + reading) * past_ns), past_ns // (2 * MS) * ended
        ahead.room(ended_by_then, under_way, at_ns, cpu_ns, int(reading * past_ns))
    return ahead.room(0, 0, at_ns, 0, 0)


def test_where_tasks_compute_no_more_are_under_way_than_last_for_a_while() -> None:
    """Where tasks compute, only tasks for a while are under way. More threads would end no more, and keep the reading
    thread from the GIL."""
    assert given(Ahead(8, 1000), 0.89, 4) == 2 * AHEAD_MS
    assert given(Ahead(64, 1000), 0.89, 1) == AHEAD_LEAST


def test_where_tasks_wait_each_thread_has_one_and_a_next_one() -> None:
    """Where tasks wait, each thread has one and a next one, though they also compute. Else the reading thread would
    have most of the time. The same holds once they wait again."""
    assert given(Ahead(8, 1000), 0.5, 4) == 16
    assert given(Ahead(8, 1000), 0.4, 4, reading=0.55) == 16
    ahead = Ahead(8, 1000)
    given(ahead, 0.89, 4)
    assert given(ahead, 0.1, 4, start_ns=START + 1000 * MS) == 16


def test_threads_do_not_fall_further_before_the_last_fall_has_had_its_effect() -> None:
    """Tasks that wait go on for a while; and tasks that compute without the GIL gain from every thread."""
    ahead = Ahead(64, 1000)
    given(ahead, 0.89, 4, under_way=200)
    assert ahead.threads == 64
    given(ahead, 1.8, 4, start_ns=START + 1000 * MS)
    assert ahead.threads == 64


def test_an_executor_that_ran_all_is_measured_by_that() -> None:
    """Though it has nothing waiting whenever it is given more. Until that was measured little is begun at once."""
    ahead = Ahead(8, 1000)
    assert ahead.burst == FIRST_RATE * BURST_MS
    ahead.ran(40, 2 * MS)
    assert ahead.tasks == 20 * AHEAD_MS
    assert ahead.burst == 20 * BURST_MS
    ahead.ran(1, RAN_MS * MS - 1)
    assert ahead.tasks == 20 * AHEAD_MS, "too short to be measured"
    ahead.ran(1, 5 * MS)
    assert ahead.tasks == 10 * AHEAD_MS, "one slow moment is not taken for the truth"
    for _ in range(9):
        ahead.ran(1, 5 * MS)
    assert (ahead.tasks, ahead.burst) == (AHEAD_LEAST, 8)


def test_an_executor_that_keeps_up_is_given_more_and_more() -> None:
    """An executor that keeps up gets more each time that it has no task left, up to its limit."""
    ahead = Ahead(8, 1000)
    for number in range(100):
        ahead.room(10 * number, 0, START + 20 * number * MS, 0, 0)
    assert ahead.tasks == 1000


def test_the_reading_thread_sleeps_for_half_of_what_the_executor_has() -> None:
    """The reading thread sleeps for half of the executor's work: not at all where each thread has at most one task, and
    for 20 ms at most."""
    ahead = Ahead(8, 1000)
    assert ahead.pause_s(8) == 0
    ahead.room(0, 10, START, 0, 0)
    ahead.room(20, 10, START + 20 * MS, 0, 0)  # one a millisecond
    assert ahead.pause_s(18) == 0.005
    assert ahead.pause_s(1000) == 0.02
