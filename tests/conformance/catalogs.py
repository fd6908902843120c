"""What every catalog keeps, as checks over a maker: ``check_catalog(make)`` runs them all.

``make(stocks, retry_window)`` gives a new catalog of these stocks that remembers so many request ids. Whether requests
at the same time get the answers of one after the other is for the race checks.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event

import pytest

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading import rules
from stock_service.trading.catalog import Catalog
from stock_service.trading.model import Status, Stock

MakeCatalog = Callable[[Sequence[Stock], int], Catalog]

STOCKS = (Stock("GameStart", 1599, 10), Stock("FishCo", 4250, 1_000_000))

WAIT_S = 10.0
"""A bound for what must not take long; only reached when something hangs."""

THREADS = 6

BARELY_S = 0.02
"""Long enough for a thread that is not held back to be seen going on."""


def trade(catalog: Catalog, name: str, quantity: int) -> tuple[int, int, Status]:
    """A trade by the rules: the volume and the number that stand afterwards, and how it ended."""
    changed = catalog.change(name, lambda stock: rules.trade(stock, quantity))
    assert changed is not None
    (stock, sequence), status = changed
    return stock.volume, sequence, status


def begins_as_it_was_made(make: MakeCatalog) -> None:
    """A new catalog has the names it was given, in order, and every stock as it was, with the number 0."""
    catalog = make(STOCKS, 10)
    assert list(catalog.names()) == ["GameStart", "FishCo"]
    assert [catalog.read(stock.name) for stock in STOCKS] == [(stock, 0) for stock in STOCKS]


def knows_its_names_exactly(make: MakeCatalog) -> None:
    """Any other name, also one that differs in case or by a space, is None, and no step is called for it."""
    catalog = make(STOCKS, 10)
    called: list[Stock] = []

    def step(stock: Stock) -> tuple[Stock, None]:
        called.append(stock)
        return stock, None

    for name in ("", "gamestart", "GameStart ", "Game\0Start", "X" * 65):
        assert catalog.read(name) is None
        assert catalog.change(name, step) is None
    assert called == []
    assert list(catalog.names()) == ["GameStart", "FishCo"]


def numbers_commits_across_stocks(make: MakeCatalog) -> None:
    """Commits of all stocks share one row of numbers; a stock is read with the number of its own last one."""
    catalog = make(STOCKS, 10)
    assert trade(catalog, "GameStart", 1) == (1, 1, Status.OK)
    assert trade(catalog, "FishCo", 5) == (5, 2, Status.OK)
    assert trade(catalog, "GameStart", 2) == (3, 3, Status.OK)
    assert catalog.read("GameStart") == (Stock("GameStart", 1599, 10, 3), 3)
    assert catalog.read("FishCo") == (Stock("FishCo", 4250, 1_000_000, 5), 2)


def a_refusal_commits_nothing(make: MakeCatalog) -> None:
    """A step that gives its stock back changes nothing and takes no number; the standing version comes back."""
    catalog = make(STOCKS, 10)
    assert trade(catalog, "GameStart", 4) == (4, 1, Status.OK)
    assert trade(catalog, "GameStart", 7) == (4, 1, Status.SUSPENDED)
    assert catalog.read("GameStart") == (Stock("GameStart", 1599, 10, 4), 1)
    assert trade(catalog, "GameStart", 6) == (10, 2, Status.OK)


def an_equal_stock_is_a_commit(make: MakeCatalog) -> None:
    """A price set to what it was is a change, with a number."""
    catalog = make(STOCKS, 10)
    changed = catalog.change("FishCo", lambda stock: rules.update(stock, stock.price_cents))
    assert changed == ((STOCKS[1], 1), Status.OK)
    assert catalog.read("FishCo") == (STOCKS[1], 1)


def a_step_that_raises_leaves_no_trace(make: MakeCatalog) -> None:
    """The error comes out, nothing changed, no number was taken, and the stock can be read and changed."""
    catalog = make(STOCKS, 10)

    def step(stock: Stock) -> tuple[Stock, None]:
        raise ZeroDivisionError(stock.name)

    with pytest.raises(ZeroDivisionError):
        catalog.change("FishCo", step)
    assert catalog.read("FishCo") == (STOCKS[1], 0)
    assert trade(catalog, "FishCo", 1) == (1, 1, Status.OK)


def every_concurrent_change_counts(make: MakeCatalog) -> None:
    """Changes from several threads at once are all there, under numbers without gaps."""
    catalog = make(STOCKS, 10)
    barrier = Barrier(THREADS)

    def run(name: str) -> list[int]:
        barrier.wait(WAIT_S)
        return [trade(catalog, name, 1)[1] for _ in range(200)]

    with ThreadPoolExecutor(THREADS) as pool:
        numbers = list(pool.map(run, ["FishCo", "GameStart"] * (THREADS // 2)))
    committed = {number for row in numbers for number in row}
    stocks = [version[0] for name in catalog.names() if (version := catalog.read(name))]
    assert [stock.volume for stock in stocks] == [10, 100 * THREADS]
    assert committed == set(range(1, 100 * THREADS + 11))


def changes_exclude_each_other(make: MakeCatalog) -> None:
    """A change of a stock does not begin while another one is half done."""
    catalog = make(STOCKS, 10)
    inside, second_is_in = Event(), Event()

    def first(stock: Stock) -> tuple[Stock, bool]:
        inside.set()
        return rules.trade(stock, 1)[0], second_is_in.wait(BARELY_S)

    def second(stock: Stock) -> tuple[Stock, int]:
        second_is_in.set()
        return stock, stock.volume

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(catalog.change, "FishCo", first)
        assert inside.wait(WAIT_S)
        two = pool.submit(catalog.change, "FishCo", second)
        first_done, second_done = one.result(WAIT_S), two.result(WAIT_S)
    assert first_done is not None
    assert first_done[1] is False
    assert second_done is not None
    assert second_done[1] == 1


def replays_the_first_reply(make: MakeCatalog) -> None:
    """The same id with the same content gives the very first reply, a refusal too, and calls nothing."""
    catalog = make(STOCKS, 10)
    calls: list[str] = []

    def answer(reply: str) -> str:
        calls.append(reply)
        return reply

    for reply in ("done", "refused"):
        request_id = f"id of {reply}"
        assert catalog.once(request_id, ("content", 1), partial(answer, reply)) == reply
        assert catalog.once(request_id, ("content", 1), partial(answer, "again")) == reply
    assert calls == ["done", "refused"]


def refuses_an_id_for_other_content(make: MakeCatalog) -> None:
    """The same id with other content is InvalidRequest, calls nothing, and does not disturb the first."""
    catalog = make(STOCKS, 10)
    assert catalog.once("id", ("FishCo", 1), lambda: "first") == "first"
    with pytest.raises(InvalidRequest, match="'id'"):
        catalog.once("id", ("FishCo", 2), lambda: "second")
    assert catalog.once("id", ("FishCo", 1), lambda: "third") == "first"


def remembers_as_many_ids_as_it_says(make: MakeCatalog) -> None:
    """The window holds the last so many ids by their first use: one more forgets the oldest and no other."""
    catalog = make(STOCKS, 3)
    for request_id in ("a", "b", "c"):
        assert catalog.once(request_id, 1, lambda: "old") == "old"
    assert catalog.once("a", 1, lambda: "new") == "old"  # which makes it no younger
    assert catalog.once("d", 1, lambda: "old") == "old"
    assert [catalog.once(request_id, 1, lambda: "new") for request_id in ("b", "c", "d")] == ["old"] * 3
    assert catalog.once("a", 2, lambda: "new") == "new"
    assert [catalog.once(request_id, 1, lambda: "newer") for request_id in ("c", "d")] == ["old"] * 2
    assert catalog.once("b", 1, lambda: "newer") == "newer"


def forgets_an_answer_that_raised(make: MakeCatalog) -> None:
    """An answer that raises lets its error out and may be tried again, with other content too; it fills no room."""
    catalog = make(STOCKS, 2)
    assert catalog.once("kept", 1, lambda: "kept") == "kept"
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            catalog.once("id", 1, lambda: 1 // 0)
    assert catalog.once("id", 2, lambda: 7) == 7
    assert catalog.once("id", 2, lambda: 8) == 7
    assert catalog.once("kept", 1, lambda: "new") == "kept"


def uses_of_an_id_at_once_have_one_effect(make: MakeCatalog) -> None:
    """Many threads with the same id: one answer is called, and all get its reply."""
    catalog = make(STOCKS, 100)
    barrier = Barrier(THREADS)
    rounds = 50

    def run(_: int) -> list[tuple[int, int, Status]]:
        replies = []
        for number in range(rounds):
            barrier.wait(WAIT_S)
            replies.append(catalog.once(str(number), 1, lambda: trade(catalog, "FishCo", 1)))
        return replies

    with ThreadPoolExecutor(THREADS) as pool:
        replies = list(pool.map(run, range(THREADS)))
    expected = [(number, number, Status.OK) for number in range(1, rounds + 1)]
    assert replies == [expected] * THREADS


def a_second_use_waits_for_the_first(make: MakeCatalog) -> None:
    """A use that comes while the first runs waits and gets its reply; other content is refused at once."""
    catalog = make(STOCKS, 10)
    running, go_on = Event(), Event()

    def slow() -> str:
        running.set()
        assert go_on.wait(WAIT_S)
        return "first"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(catalog.once, "id", 1, slow)
        assert running.wait(WAIT_S)
        second: Future[str] = pool.submit(catalog.once, "id", 1, lambda: "second")
        with pytest.raises(InvalidRequest):
            catalog.once("id", 2, lambda: "third")
        assert catalog.once("other id", 1, lambda: "other") == "other"
        assert not second.done()
        go_on.set()
        assert (first.result(WAIT_S), second.result(WAIT_S)) == ("first", "first")


def a_second_use_takes_over_from_one_that_raised(make: MakeCatalog) -> None:
    """Those who wait for a first use that raises run instead: one of them, and the others get its reply."""
    catalog = make(STOCKS, 10)
    running, go_on = Event(), Event()
    calls: list[str] = []

    def failing() -> str:
        running.set()
        assert go_on.wait(WAIT_S)
        raise ZeroDivisionError

    def answer() -> str:
        calls.append("called")
        return "second"

    with ThreadPoolExecutor(THREADS) as pool:
        first = pool.submit(catalog.once, "id", 1, failing)
        assert running.wait(WAIT_S)
        others = [pool.submit(catalog.once, "id", 1, answer) for _ in range(THREADS - 1)]
        go_on.set()
        assert isinstance(first.exception(WAIT_S), ZeroDivisionError)
        assert [other.result(WAIT_S) for other in others] == ["second"] * (THREADS - 1)
    assert calls == ["called"]


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
    refuses_an_id_for_other_content,
    remembers_as_many_ids_as_it_says,
    forgets_an_answer_that_raised,
    uses_of_an_id_at_once_have_one_effect,
    a_second_use_waits_for_the_first,
    a_second_use_takes_over_from_one_that_raised,
)
"""Every check; a new catalog, and a new locking strategy, pass them all."""


def check_catalog(make: MakeCatalog) -> None:
    """Runs every check on catalogs of a maker."""
    for check in CHECKS:
        check(make)
