"""Checks of every catalog, over a maker: ``test_catalogs.py`` runs them all.

``make(stocks, retry_window)`` gives a new catalog of these stocks that remembers ``retry_window`` request ids. The
maker closes its files. Left out: linearizability of concurrent requests, which the race checks have.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    return catalog.change(name, lambda stock: rules.trade(stock, quantity) if stock else rules.UNKNOWN, once)


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


def one(stock: Stock | None) -> tuple[Stock | None, Status]:
    """A trade of one share."""
    return rules.trade(stock, 1) if stock else rules.UNKNOWN


def begins_as_it_was_made(make: MakeCatalog) -> None:
    """A new catalog has the names it was given, in order, and every stock as it was, with the number 0."""
    catalog = make(STOCKS, 10)
    assert list(catalog.names()) == ["GameStart", "FishCo"]
    assert [catalog.read(stock.name) for stock in STOCKS] == [(stock, 0) for stock in STOCKS]


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


def numbers_commits_across_stocks(make: MakeCatalog) -> None:
    """Commits of all stocks share one row of numbers; a stock is read with the number of its own last one."""
    catalog = make(STOCKS, 10)
    assert trade(catalog, "GameStart", 1) == (Status.OK, 1, 1)
    assert trade(catalog, "FishCo", 5) == (Status.OK, 5, 2)
    assert trade(catalog, "GameStart", 2) == (Status.OK, 3, 3)
    assert catalog.read("GameStart") == (Stock("GameStart", 1599, 10, 3), 3)
    assert catalog.read("FishCo") == (Stock("FishCo", 4250, 1_000_000, 5), 2)


def a_refusal_commits_nothing(make: MakeCatalog) -> None:
    """A step that gives its stock back changes nothing and takes no number; the volume that stands comes back."""
    catalog = make(STOCKS, 10)
    assert trade(catalog, "GameStart", 4) == (Status.OK, 4, 1)
    assert trade(catalog, "GameStart", 7) == (Status.SUSPENDED, 4, 0)
    assert catalog.read("GameStart") == (Stock("GameStart", 1599, 10, 4), 1)
    assert trade(catalog, "GameStart", 6) == (Status.OK, 10, 2)


def an_equal_stock_is_a_commit(make: MakeCatalog) -> None:
    """A price set to its old value is a change, with a number."""
    catalog = make(STOCKS, 10)
    price_cents = STOCKS[1].price_cents
    repriced = catalog.change("FishCo", lambda stock: rules.update(stock, price_cents) if stock else rules.UNKNOWN)
    assert repriced == (Status.OK, 0, 1)
    assert catalog.read("FishCo") == (STOCKS[1], 1)


def a_step_that_raises_leaves_no_trace(make: MakeCatalog) -> None:
    """The error comes out, nothing changed, no number was taken, and the stock can be read and changed."""
    catalog = make(STOCKS, 10)
    with pytest.raises(ZeroDivisionError):
        catalog.change("FishCo", failing)
    assert catalog.read("FishCo") == (STOCKS[1], 0)
    assert trade(catalog, "FishCo", 1) == (Status.OK, 1, 1)


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


def replays_the_first_reply(make: MakeCatalog) -> None:
    """A second use of an id with the same content gives the first reply, without a call of the step."""
    catalog = make(STOCKS, 10)
    assert use(catalog, "id") == (Status.OK, 1, 1)
    assert trade(catalog, "FishCo", 5) == (Status.OK, 6, 2)
    again = catalog.change("FishCo", failing, Once("id", ""))
    assert again == (Status.OK, 1, 1)
    assert isinstance(again[0], Status)
    assert catalog.read("FishCo") == (Stock("FishCo", 4250, 1_000_000, 6), 2)


def replays_refusals(make: MakeCatalog) -> None:
    """A refusal is remembered, even if the trade would be accepted now. An unknown stock is a refusal, too."""
    catalog = make(STOCKS, 10)
    assert trade(catalog, "GameStart", 4) == (Status.OK, 4, 1)
    for _ in range(2):
        assert trade(catalog, "GameStart", 7, Once("large", "7")) == (Status.SUSPENDED, 4, 0)
        assert trade(catalog, "Missing", 1, Once("no stock", "1")) == (Status.UNKNOWN_STOCK, 0, 0)
        assert trade(catalog, "GameStart", 1)[0] is Status.OK


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


def refuses_an_id_for_other_content(make: MakeCatalog) -> None:
    """A second use of an id with other content raises InvalidRequest, has no effect, and does not disturb the first
    use."""
    catalog = make(STOCKS, 10)
    assert use(catalog, "id", "one") == (Status.OK, 1, 1)
    with pytest.raises(InvalidRequest, match="'id'"):
        use(catalog, "id", "two")
    assert use(catalog, "id", "one") == (Status.OK, 1, 1)
    assert catalog.read("FishCo") == (Stock("FishCo", 4250, 1_000_000, 1), 1)


def remembers_as_many_ids_as_it_says(make: MakeCatalog) -> None:
    """The window holds the last ids by their first use. One more id forgets only the oldest."""
    catalog = make(STOCKS, 3)
    for number, request_id in enumerate(("a", "b", "c"), start=1):
        assert use(catalog, request_id) == (Status.OK, number, number)
    assert use(catalog, "a") == (Status.OK, 1, 1)  # which makes it no younger
    assert use(catalog, "d") == (Status.OK, 4, 4)
    assert [use(catalog, request_id)[2] for request_id in ("b", "c", "d")] == [2, 3, 4]
    assert use(catalog, "a", "other") == (Status.OK, 5, 5)
    assert [use(catalog, request_id)[2] for request_id in ("c", "d")] == [3, 4]
    assert use(catalog, "b", "other") == (Status.OK, 6, 6)
    for number in range(20):
        assert use(catalog, f"{number}") == use(catalog, f"{number}")


def forgets_a_change_that_raised(make: MakeCatalog) -> None:
    """A step that raised may be tried again under its id, with any content. It takes no place in the window."""
    catalog = make(STOCKS, 2)
    assert use(catalog, "kept") == (Status.OK, 1, 1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            catalog.change("FishCo", failing, Once("id", ""))
    assert use(catalog, "id", "other") == (Status.OK, 2, 2)
    assert use(catalog, "id", "other") == (Status.OK, 2, 2)
    assert use(catalog, "kept") == (Status.OK, 1, 1)


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


CHECKS: Sequence[Callable[[MakeCatalog], None]] = (
    begins_as_it_was_made,
    knows_its_names_exactly,
    numbers_commits_across_stocks,
    a_refusal_commits_nothing,
    an_equal_stock_is_a_commit,
    a_step_that_raises_leaves_no_trace,
    every_concurrent_change_counts,
    changes_exclude_each_other,
    replays_the_first_reply,
    replays_refusals,
    takes_any_id_and_content,
    refuses_an_id_for_other_content,
    remembers_as_many_ids_as_it_says,
    forgets_a_change_that_raised,
    uses_of_an_id_at_once_have_one_effect,
    a_second_use_waits_for_the_first,
    a_second_use_takes_over_from_one_that_raised,
)
"""Every check; a new catalog, and a new locking strategy, pass them all."""
