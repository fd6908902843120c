"""Checks of every catalog, over a maker: ``test_catalogs.py`` runs them all.

``make(stocks, retry_window)`` gives a new catalog of these stocks that remembers ``retry_window`` request ids. The
maker closes its files. Left out: linearizability of concurrent requests, which the race checks have.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from threading import Barrier, Event

import pytest

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading import rules
from stock_service.trading.catalog import Catalog, Step
from stock_service.trading.model import Status, Stock
from stock_service.trading.once import Changed, Once

MakeCatalog = Callable[[Sequence[Stock], int], Catalog]

STOCKS = (Stock("GameStart", 1599, 10), Stock("FishCo", 4250, 1_000_000))

WAIT_S = 10.0
"""A bound for what must not take long; only reached when something hangs."""

THREADS = 6

CHANGES = 40
"""Requests of each thread: on a disk one may take milliseconds."""

BARELY_S = 0.02
"""Long enough for a thread that is not held back to be seen going on."""


def trade(catalog: Catalog, name: str, quantity: int, once: Once | None = None) -> Changed:
    """A trade by the rules."""
    return catalog.change(name, partial(traded, quantity), once)


def use(catalog: Catalog, request_id: str, content: str = "", quantity: int = 1) -> Changed:
    """A trade of FishCo under an id."""
    return trade(catalog, "FishCo", quantity, Once(request_id, content))


def held(event: Event, go_on: Event, then: Step) -> Step:
    """A step that says it has begun, and waits until it may go on."""

    def step(stock: Stock | None) -> tuple[Stock | None, Status]:
        event.set()
        assert go_on.wait(WAIT_S)
        return then(stock)

    return step


def failing(stock: Stock | None) -> tuple[Stock | None, Status]:
    """A step that raises."""
    raise ZeroDivisionError(stock)


def repriced(price_cents: int, stock: Stock | None) -> tuple[Stock | None, Status]:
    """A step that sets a price."""
    return rules.update(stock, price_cents) if stock else rules.UNKNOWN


def traded(quantity: int, stock: Stock | None) -> tuple[Stock | None, Status]:
    """A step that trades."""
    return rules.trade(stock, quantity) if stock else rules.UNKNOWN


one = partial(traded, 1)

STEPS = (one, one, partial(traded, 4), partial(repriced, 1599), partial(repriced, 4250), failing)


def knows_its_names_exactly(make: MakeCatalog) -> None:
    """A name that differs in case or by a space is unknown. A step gets None for an unknown name."""
    catalog = make(STOCKS, 10)
    given: list[Stock | None] = []

    def step(stock: Stock | None) -> tuple[Stock | None, Status]:
        given.append(stock)
        return stock, Status.UNKNOWN_STOCK

    for number, name in enumerate(("", "gamestart", "GameStart ", "Game\0Start", "X" * 65)):
        assert catalog.read(name) is None
        assert catalog.change(name, step) == (Status.UNKNOWN_STOCK, 0, 0)
        assert catalog.change(name, step, Once(f"{number}", "")) == (Status.UNKNOWN_STOCK, 0, 0)
    assert given == [None] * 10
    assert list(catalog.names()) == ["GameStart", "FishCo"]


def every_concurrent_change_counts(make: MakeCatalog) -> None:
    """Changes from several threads at once are all there, under numbers without gaps."""
    catalog = make(STOCKS, 10)
    barrier = Barrier(THREADS)

    def run(name: str) -> list[int]:
        barrier.wait(WAIT_S)
        return [trade(catalog, name, 1)[2] for _ in range(CHANGES)]

    with ThreadPoolExecutor(THREADS) as pool:
        numbers = list(pool.map(run, ["FishCo", "GameStart"] * (THREADS // 2)))
    committed = {number for row in numbers for number in row}
    stocks = [version[0] for name in catalog.names() if (version := catalog.read(name))]
    traded = CHANGES // 2 * THREADS
    assert [stock.volume for stock in stocks] == [10, traded]
    assert committed == set(range(traded + 11))  # 0: of those refused


def changes_exclude_each_other(make: MakeCatalog) -> None:
    """A change of a stock does not begin while another one is half done."""
    catalog = make(STOCKS, 10)
    inside, second_is_in = Event(), Event()
    seen: list[bool] = []

    def first(stock: Stock | None) -> tuple[Stock | None, Status]:
        inside.set()
        seen.append(second_is_in.wait(BARELY_S))
        return one(stock)

    def second(stock: Stock | None) -> tuple[Stock | None, Status]:
        second_is_in.set()
        return stock, Status.SUSPENDED

    with ThreadPoolExecutor(2) as pool:
        begun = pool.submit(catalog.change, "FishCo", first)
        assert inside.wait(WAIT_S)
        later = pool.submit(catalog.change, "FishCo", second)
        assert begun.result(WAIT_S) == (Status.OK, 1, 1)
        assert later.result(WAIT_S) == (Status.SUSPENDED, 1, 0)
    assert seen == [False]


def takes_any_id_and_content(make: MakeCatalog) -> None:
    """Ids and contents with any characters are told apart as a whole: not by a digest or by their ends."""
    catalog = make(STOCKS, 100)
    ids = ["a", "a\0", "é", "\ud800", "𝄞" * 64, "𝄞" * 63, "x" * 64, "x" * 63 + "y", " a", "A"]
    contents = ["", "\0", "c" * 24, "c" * 25, "c" * 24 + "d", "é" * 13, "\ud800"]
    assert [use(catalog, request_id) for request_id in ids] == [(Status.OK, n, n) for n in range(1, len(ids) + 1)]
    for number, content in enumerate(contents):
        first = use(catalog, f"content {number}", content)
        assert use(catalog, f"content {number}", content) == first
        for other in contents:
            if other != content:
                with pytest.raises(InvalidRequest):
                    use(catalog, f"content {number}", other)


def uses_of_an_id_at_once_have_one_effect(make: MakeCatalog) -> None:
    """Many concurrent requests with the same id make one change, and all get its reply."""
    catalog = make(STOCKS, 100)
    barrier = Barrier(THREADS)

    def run(_: int) -> list[Changed]:
        replies = []
        for number in range(CHANGES):
            barrier.wait(WAIT_S)
            replies.append(use(catalog, str(number)))
        return replies

    with ThreadPoolExecutor(THREADS) as pool:
        replies = list(pool.map(run, range(THREADS)))
    expected = [(Status.OK, number, number) for number in range(1, CHANGES + 1)]
    assert replies == [expected] * THREADS


def a_second_use_waits_for_the_first(make: MakeCatalog) -> None:
    """A use that comes while the first runs gets its reply; other content is refused, and not before it has ended."""
    catalog = make(STOCKS, 10)
    running, go_on = Event(), Event()
    seen: list[int] = []

    def other() -> None:
        with pytest.raises(InvalidRequest):
            use(catalog, "id", "other")
        version = catalog.read("FishCo")
        assert version is not None
        seen.append(version[0].volume)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(catalog.change, "FishCo", held(running, go_on, one), Once("id", ""))
        assert running.wait(WAIT_S)
        second, third = pool.submit(use, catalog, "id"), pool.submit(other)
        with pytest.raises(TimeoutError):
            third.result(BARELY_S)
        assert not second.done()
        go_on.set()
        assert first.result(WAIT_S) == second.result(WAIT_S) == (Status.OK, 1, 1)
        third.result(WAIT_S)
    assert seen == [1]  # a Lookup after the refusal shows the trade that it speaks of


def a_second_use_takes_over_from_one_that_raised(make: MakeCatalog) -> None:
    """A request that waits for a first use runs if the first use raises, with any content. It is not refused."""
    catalog = make(STOCKS, 10)
    running, go_on = Event(), Event()
    with ThreadPoolExecutor(THREADS) as pool:
        first = pool.submit(catalog.change, "FishCo", held(running, go_on, failing), Once("id", ""))
        assert running.wait(WAIT_S)
        others = [pool.submit(use, catalog, "id", "other") for _ in range(THREADS - 1)]
        go_on.set()
        assert isinstance(first.exception(WAIT_S), ZeroDivisionError)
        assert [other.result(WAIT_S) for other in others] == [(Status.OK, 1, 1)] * (THREADS - 1)


class Plainest:
    """The plainest catalog, for one thread: a dictionary of stocks, a counter of commits and a list of used ids."""

    def __init__(self, stocks: Sequence[Stock], retry_window: int) -> None:
        self.versions, self._commits = {stock.name: (stock, 0) for stock in stocks}, 0
        self._retry_window = retry_window
        self._used: dict[str, tuple[str, Changed]] = {}

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        """As a catalog does."""
        if once and once.request_id in self._used:
            content, changed = self._used[once.request_id]
            if content != once.content:
                raise InvalidRequest(f"{once.request_id!r}")
            return changed
        stock, status = step(self.versions[name][0] if name in self.versions else None)
        number = 0
        if status is Status.OK and stock is not None:
            number = self._commits = self._commits + 1
            self.versions[name] = stock, number
        changed = status, 0 if stock is None else stock.volume, number
        if once:
            self._used[once.request_id] = once.content, changed
            if len(self._used) > self._retry_window:
                del self._used[next(iter(self._used))]
        return changed


def answer(catalog: Catalog | Plainest, name: str, step: Step, once: Once | None) -> tuple[object, ...]:
    """The reply to a change and its status's type; or the kind of its error, and True if the error names the id."""
    try:
        changed = catalog.change(name, step, once)
    except (InvalidRequest, ZeroDivisionError) as error:
        return type(error), once is not None and repr(once.request_id) in str(error)
    return *changed, type(changed[0])


def answers_as_the_plainest_catalog(make: MakeCatalog) -> None:
    """Any row of requests of one thread gets the answers of the plainest catalog, which begins with commit number 0.

    A refusal and a step that raises commit nothing, and a price set to its old value is a commit. Commits of all stocks
    share one row of numbers. An id that is used again gets its first reply, even a refusal, or InvalidRequest if its
    content is another one. The window has the last ids by their first use, without those whose step raised.
    """
    random = Random(1)
    for window in (1, 3):
        catalog, plainest = make(STOCKS, window), Plainest(STOCKS, window)
        for _ in range(100):
            name, step = random.choice(("GameStart", "FishCo", "Missing")), random.choice(STEPS)
            once = random.choice((None, Once(str(random.randrange(6)), random.choice("aab"))))
            assert answer(catalog, name, step, once) == answer(plainest, name, step, once)
            assert [catalog.read(stock.name) for stock in STOCKS] == [*plainest.versions.values()]


CHECKS: Sequence[Callable[[MakeCatalog], None]] = (
    answers_as_the_plainest_catalog,
    knows_its_names_exactly,
    every_concurrent_change_counts,
    changes_exclude_each_other,
    takes_any_id_and_content,
    uses_of_an_id_at_once_have_one_effect,
    a_second_use_waits_for_the_first,
    a_second_use_takes_over_from_one_that_raised,
)
"""Every check; a new catalog, and a new locking strategy, pass them all."""
