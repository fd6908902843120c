"""A pool that fills: every number of clients is measured, drawn and told, and starved clients are counted."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.results.observed import Window
from experiments.show.content import Seen
from experiments.studies.stock import STOCK, pool_fills, sweeps
from experiments.studies.stock.pool_fills import CLIENTS, CONNECTION, LINES, ON_GRPC, REQUEST, WAIT_MS
from experiments.studies.study import Scale
from tests.unit.experiments.studies.stock.judgements import judgement, only, planted

WHOLE = Scale(rounds=2, looks=(10, 14), clients=CLIENTS)
POOL = sweeps.POOL


def arm(line: str, clients: int) -> Arm:
    """Arm of a line of the figure."""
    return Arm(LINES[line].but(connections=clients))


def full_us(clients: int) -> float:
    """Latency of a Lookup where the pool's threads are the limit."""
    return 1000 * WAIT_MS * max(1.0, clients / POOL)


def seen(
    lines: Collection[str] = (REQUEST, ON_GRPC),
    at: Mapping[int, float] | None = None,
    starved: Mapping[Arm, int] | None = None,
    failed: Collection[Arm] = (),
    clients: Collection[int] = CLIENTS,
) -> Seen:
    """Lines of the part where latency is flat up to the pool's size, and then rises.

    ``at``: factors of the latency, by numbers of clients; ``starved``: clients without a reply in a window, by arm.
    """
    names = [f"{end}{line}" for line in lines for end in (pool_fills.TO_POOL, pool_fills.PAST_POOL)]
    sweep = only(
        pool_fills.sweep(replace(WHOLE, clients=tuple(clients))),
        *names,
        arms=[arm(line, n) for line in lines for n in clients],
    )
    times, windows = {}, {}
    for each in sweep.arms:
        times[each] = full_us(each.connections) * (at or {}).get(each.connections, 1.0)
        windows[each] = [Window(None, 480.0, 480.0, (starved or {}).get(each, 0), 0, None, 0.2)]
    world = planted(times, scatter=0.0002, windows=windows, errors=list(failed))
    return Seen(judgement(sweep, 10, world))


@pytest.mark.parametrize("asked", [CLIENTS, (1, 2, 3, 4, 5), (3, 17)])
def test_every_line_has_every_number_of_clients(asked: tuple[int, ...]) -> None:
    """Every line has each asked number of clients, and the numbers that the answers need. Unless asked, there are 1 to
    twice the pool's size."""
    assert STOCK.parts["pool_fills"].clients == tuple(range(1, 11))
    sweep, usual = (pool_fills.sweep(Scale(rounds=4, looks=(10,), clients=each)) for each in (asked, CLIENTS))
    assert {each for each in sweep.arms if not each.copy} == {
        arm(line, n) for line in LINES for n in (*asked, 1, 5, 10)
    }
    assert [each.name for each in sweep.comparisons] == [each.name for each in usual.comparisons]


def test_where_no_client_starves_every_client_is_served() -> None:
    """The answer says that every client is served on kept connections, too."""
    _, none, _ = pool_fills.answers(seen([CONNECTION]))
    assert none.sentence.startswith("On kept connections every client is served.")


def test_clients_that_starve_elsewhere_are_counted_in_a_window() -> None:
    """One starved client in each of ten windows counts as one client, and not as ten."""
    _, second, _ = pool_fills.answers(seen([CONNECTION, REQUEST], starved={arm(REQUEST, 10): 1}))
    assert "1 of 10 clients get no reply" in second.sentence


def test_flat_then_rising_is_said_in_a_sentence_to_be_repeated() -> None:
    """Flat then rising is one sentence with its latencies and the ratio."""
    first, *_ = pool_fills.answers(seen([REQUEST]))
    assert re.fullmatch(
        r"A Lookup on sockets that waits 10 ms takes 10\.0 ms with 1 client and with 5\. "
        r"With 10 clients it takes 20\.0 ms, 2\.0\d* times as long as with 5 \(.*\): 5 are served, and 5 wait\.",
        first.sentence,
    )


@pytest.mark.parametrize("at", [dict.fromkeys(range(6, 11), 0.5), {5: 1.2}])
def test_what_is_not_flat_then_rising_is_told_by_its_verdicts(at: Mapping[int, float]) -> None:
    """Latency that does not rise past the pool's size, or rises before, has its values and the steps. The details have
    each verdict."""
    first, *_ = pool_fills.answers(seen([REQUEST], at=at))
    assert first.sentence.startswith("A Lookup on sockets that waits 10 ms takes 10.0 ms with 1 client, ")
    assert "are served, and 5 wait." not in first.sentence
    assert " clients. Latency " in first.sentence or ". Latency " in first.sentence
    assert "10 clients where a request is a task have" in first.details[1]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({4: 1.1}, "Latency rises from 3 to 4 clients (ratio 1.10). Latency falls from 4 to 5 clients (ratio 0.909)."),
        ({8: 0.8}, "Latency falls from 7 to 8 clients (ratio 0.914)."),
    ],
)
def test_flat_then_rising_is_said_only_where_every_step_bears_it_out(at: Mapping[int, float], said: str) -> None:
    """The answer of each line names a step that contradicts it, though both ends are as before."""
    first, _, third = pool_fills.answers(seen(at=at))
    for answer in (first, third):
        assert "are served, and 5 wait." not in answer.sentence
        assert said in answer.sentence
        assert any(said in each for each in answer.details)


def test_more_clients_than_an_answer_compares_change_no_answer() -> None:
    """With 20 clients too, a step from 10 to 20 clients that falls is in no answer, since the answers end at 10."""
    for answer in pool_fills.answers(seen(at={20: 0.1}, clients=(*CLIENTS, 20))):
        said = " ".join((answer.sentence, *answer.details))
        assert "to 20 clients" not in said
        assert "20 ÷ 10" not in said


def test_a_step_that_gates_left_out_bears_nothing_out() -> None:
    """A step whose blocks the gates left out keeps the sentence back."""
    said = pool_fills.answers(seen([REQUEST], failed=[arm(REQUEST, 3)]))[0].sentence
    assert "The gates left no block for 2 steps." in said
    assert "are served, and 5 wait." not in said
