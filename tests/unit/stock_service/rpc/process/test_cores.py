"""Cores of a server's threads: the values of ``--cpus``, when all cores are tried, and which one is kept to."""

import os
import threading
import time
from argparse import ArgumentTypeError
from errno import EMFILE
from itertools import count, pairwise

import pytest

from stock_service.rpc.errors import UsageError
from stock_service.rpc.process import cores
from stock_service.rpc.process.cores import AGAIN_MOST_S, AUTO, LOOK_S, NONE, Keeper, Keeping, Used, better_core, cpus


class Simulated:
    """A server that a ``Keeping`` looks at every ``LOOK_S``."""

    def __init__(self) -> None:
        self._now = Used(0.0, 0.0, 0.0, 0.0)
        self.keeping = Keeping(self._now)

    def runs(self, for_s: float, user: float, kernel: float = 0.0, waited: float = 0.0) -> list[bool]:
        """Computes, and waits, these shares of a second. Gives after each look if the server has all cores."""
        seen = []
        for _ in range(round(for_s / LOOK_S)):
            last = self._now
            self._now = Used(
                last.at_s + LOOK_S,
                last.user_s + LOOK_S * user,
                last.kernel_s + LOOK_S * kernel,
                last.waited_s + LOOK_S * waited,
            )
            self.keeping.look(self._now)
            seen.append(self.keeping.free)
        return seen


def test_a_server_that_does_not_fill_its_core_stays_on_it() -> None:
    """A server that fills its core, or computes for half of the time and waits for its core in the other half, is
    tried on all cores."""
    for user, kernel, waited, tried in (
        (0.3, 0.2, 0.0, False),  # half of its core is used
        (0.5, 0.3, 0.09, False),  # nearly all of its core is used
        (0.25, 0.25, 0.5, True),  # the core is another program's, too
        (0.5, 0.0, -3.0, False),  # threads that ended take their waits with them, and the counted waits fall
    ):
        server = Simulated()
        assert (True in server.runs(60, user, kernel, waited)) == bool(server.keeping.tries) == tried


def test_under_the_gil_a_full_server_is_tried_ever_later() -> None:
    """Under the GIL a full server is tried at once, then 1, 2, 4 and 8 s later, then every 16 s: at most a fiftieth of
    ten minutes."""
    server = Simulated()
    states = server.runs(600, user=0.7, kernel=0.6)
    tried = [number * LOOK_S for number, state in enumerate(states) if state]
    gaps = [later - earlier for earlier, later in pairwise(tried)]
    assert gaps[:4] == pytest.approx([1, 2, 4, 8], abs=2.1 * LOOK_S)
    assert gaps[5:] == pytest.approx([AGAIN_MOST_S] * len(gaps[5:]), abs=2.1 * LOOK_S)
    assert not any(one and other for one, other in pairwise(states)), "it stays so"
    assert server.keeping.free_s < 600 / 50


def test_work_that_lets_the_gil_go_has_all_cores_as_long_as_it_lasts() -> None:
    """Work that releases the GIL has all cores as long as it lasts. Kept to a core it gets one core's time, and else
    that of two."""
    server = Simulated()
    assert server.runs(LOOK_S, user=1.0) == [True]
    assert set(server.runs(10, user=1.9)) == {True}
    assert set(server.runs(10, user=0.1)) == {False}
    assert server.runs(LOOK_S, user=1.0) == [True]
    assert server.keeping.free_s == pytest.approx(10 + LOOK_S)


def test_a_core_that_others_use_is_left_for_one_that_is_idle() -> None:
    """A core that others use is left for an idle one: not for a busy one, and not because the server itself fills its
    own."""
    assert better_core(0, 0.2, {0: 0.0, 1: 0.2}) == 1
    assert better_core(0, 0.1, {0: 0.05, 1: 0.2}) == 1
    assert better_core(0, 0.0, {0: 0.0, 1: 0.2}) == 0
    assert better_core(0, 0.2, {0: 0.0, 1: 0.05}) == 0
    assert better_core(0, 0.2, {0: 0.2, 1: 0.0}) == 0
    assert better_core(0, 0.2, {}) == 0


@pytest.mark.parametrize(
    ("text", "given"), [("auto", AUTO), ("none", NONE), ("0", (0,)), ("4,2-3", (2, 3, 4)), ("1,1", (1,))]
)
def test_what_the_option_takes(text: str, given: object) -> None:
    """A word, or cores and ranges of them."""
    assert cpus(text) == given


@pytest.mark.parametrize("text", ["", "all", "1-", "3-2", "-1", "0,,1", "1.5", "0-9999999999"])
def test_what_it_refuses(text: str) -> None:
    """A wrong value is refused in a line with the allowed ones."""
    with pytest.raises(ArgumentTypeError, match=r"got .*, allowed: auto, none"):
        cpus(text)


def test_cores_that_it_may_not_run_on_are_refused() -> None:
    """Cores that the process may not use are refused by their numbers."""
    with pytest.raises(UsageError, match=r"--cpus: got 'core 1000000', allowed: of core"):
        Keeper((1_000_000,))


def test_every_thread_is_moved() -> None:
    """Running threads are moved, with threads that they start later, and moved back."""
    own, ended = cores.cores_allowed(), threading.Event()
    waiting = threading.Thread(target=ended.wait)
    waiting.start()
    try:
        cores._move(own[:1])
        assert {tuple(os.sched_getaffinity(int(task))) for task in os.listdir("/proc/self/task")} == {own[:1]}
    finally:
        cores._move(own)
        ended.set()
        waiting.join()
    assert os.sched_getaffinity(0) == set(own)


def test_a_look_sees_what_was_computed() -> None:
    """The counters only grow while no thread ends."""
    before = cores._used()
    sum(range(300_000))
    after = cores._used()
    assert after.at_s > before.at_s
    assert after.user_s + after.kernel_s > before.user_s + before.kernel_s
    assert after.waited_s >= before.waited_s


def test_a_look_without_a_free_descriptor_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look without a free descriptor is left out, and the next looks are made."""
    reads, ended = count(1), threading.Event()

    def used() -> Used:
        number = next(reads)
        if number == 3:  # the second look
            raise OSError(EMFILE, os.strerror(EMFILE))
        if number > 4:
            ended.set()
        return Used(time.monotonic(), 0.0, 0.0, 0.0)

    monkeypatch.setattr(cores, "LOOK_S", 0.001)
    monkeypatch.setattr(cores, "cores_allowed", lambda: (0, 1))
    monkeypatch.setattr(cores, "has_gil", lambda: True)
    monkeypatch.setattr(cores, "_used", used)
    monkeypatch.setattr(cores, "_move", lambda _: None)
    keeper = Keeper(AUTO)
    assert ended.wait(10.0)
    assert keeper.stop().startswith("kept to one of cores 0, 1")
