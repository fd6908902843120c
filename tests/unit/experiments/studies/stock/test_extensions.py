"""Answers of the further parts: a sentence by verdict for every comparison, and a count of verdicts for many
comparisons."""

import pytest

from experiments.__main__ import parser
from experiments.commands import run
from experiments.design.arms import Arm
from experiments.results.observed import Window
from experiments.show.content import Answer
from experiments.studies.stock import STOCK, executors, extensions, sweeps
from experiments.studies.study import Scale
from stock_service.rpc.concurrency import EXECUTORS
from tests.unit.experiments.blocks import stage_summary
from tests.unit.experiments.studies.stock.judgements import planted, seen

PARTS = {name: part for name, part in STOCK.parts.items() if name != "stock"}

WITHOUT_VERDICTS = ("offered_load", "lock_waits", "stages")


@pytest.mark.parametrize("part", PARTS)
def test_every_part_answers(part: str) -> None:
    """Every answer of every part has a sentence, and every figure has words: without blocks, unfinished, and judged.
    Equal arms show no difference."""
    for blocks in (0, 3, 10):
        given = seen(PARTS[part].sweep, blocks)
        found = PARTS[part].answers(given)
        assert found
        assert all(each.alternative for each in PARTS[part].pictures(given))
        for answer in found:
            assert answer.sentence.endswith(".")
            if answer.deciding:
                text = " ".join((answer.sentence, *answer.details))
                assert ("No verdict. " in text) == (blocks == 3)
                assert ("take the same time" in text or "is the same" in text) == (blocks == 10)
            assert (extensions.NO_VERDICT in answer.details) == (part in WITHOUT_VERDICTS)


@pytest.mark.parametrize("part", [part for part in PARTS if part not in WITHOUT_VERDICTS])
def test_every_headline_comparison_is_told(part: str) -> None:
    """The headline comparisons, which end the sweep, decide the answers, each once."""
    given = seen(PARTS[part].sweep)
    answers = PARTS[part].answers(given)
    told = [judged.comparison.name for answer in answers for judged in answer.deciding]
    assert sorted(told) == sorted(each.name for each in given.main.sweep.comparisons if each.family == "headline")
    assert all(answer.to_decide is None for answer in answers)


def test_every_executor_of_a_transport_is_an_arm() -> None:
    """Every executor of a transport is an arm. grpcio's server reads with its own threads, so that it has no leader."""
    arms = executors.sweep(Scale(rounds=4, looks=(10,), clients=STOCK.parts["executors"].clients)).arms
    for transport, without in (("sockets", set()), ("grpc", {"leader-followers"})):
        own = {(arm.setting["executor"], arm.connections) for arm in arms if arm.setting["transport"] == transport}
        assert own == {(name, n) for name in EXECUTORS.keys() - without for n in (1, 5, 10)}


@pytest.mark.parametrize("part", ["pool_fills", "executors", "stock"])
def test_any_numbers_of_clients_may_be_asked_for(part: str) -> None:
    """``--clients`` gives any numbers of clients, beside those that answers need. Without it the part has its own."""

    def counts(*words: str) -> set[int]:
        options = parser("run").parse_args(["run", part, *words])
        return {
            arm.connections for arm in STOCK.parts[part].sweep(run.scale_of(STOCK, STOCK.parts[part], options)).arms
        }

    asked = counts("--clients", "1", "2", "3", "4", "5")
    if part == "stock":  # whose figure 5 goes on past the pool
        assert asked == counts() == set(range(1, 11))
    else:
        assert asked == {1, 2, 3, 4, 5} | ({10} if part == "pool_fills" else set())
        assert counts() == set(STOCK.parts[part].clients)


def offered(reached_hz: float, sent_share: float = 1.0, unsent_hz: float | None = None) -> Answer:
    """The answer for a gRPC server that answers up to this number of requests a second. The load does not send at the
    rate ``unsent_hz``."""
    rates = sweeps.OFFERED["grpc"]
    base = sweeps.GRPC.but(client="lean", connections=16)
    sent_hz = {rate: rate * (0.9 if rate == unsent_hz else sent_share) for rate in rates}
    windows = {
        Arm(base.but(rate_hz=rate)): [Window(rate, sent, min(rate, reached_hz), 0, 0, 10.0, duration_s=60.0)]
        for rate, sent in sent_hz.items()
    }
    return extensions.offered_load(seen(sweeps.offered_load, 10, planted(windows=windows)))[0]


def test_a_rate_that_was_not_kept_up_with_has_no_percentile() -> None:
    """For rates above the highest kept rate the answer has the rate of replies, and no percentile."""
    assert "Of 4,000 requests due a second, 2,500 were answered." in offered(2500.0).details


@pytest.mark.parametrize(
    ("reached_hz", "said"),
    [(100.0, "gRPC kept up with none of the rates."), (1e9, "gRPC kept up with 5,500 requests a second, the highest")],
)
def test_all_rates_or_none(reached_hz: float, said: str) -> None:
    """The answer says where the server kept up with all rates, or with none."""
    assert offered(reached_hz).sentence.startswith(said)


def test_nothing_is_said_of_a_rate_that_was_not_sent() -> None:
    """A load that did not send at its rate says nothing of the server."""
    answer = offered(1e9, sent_share=0.9)
    assert "At 500 a second no window counts." in answer.details
    assert answer.sentence == "Not known: no window counts."


def test_an_unknown_rate_ends_the_rates_that_were_kept_up_with() -> None:
    """A server kept up with every rate below one that the load did not send. An unknown lowest rate leaves it open."""
    first, *others = sweeps.OFFERED["grpc"]
    assert offered(1e9, unsent_hz=others[0]).sentence == f"gRPC kept up with {first:,.0f} requests a second."
    assert offered(1e9, unsent_hz=first).sentence == "Not known: no window counts."


def test_the_wait_for_a_thread_is_of_all_clients_told() -> None:
    """The answer begins with the wait under the most clients, and has the number of threads that the server stamped."""
    stages = {
        Arm(sweeps.SOCKETS.but(workers=5, clients=clients)): {"lookup": stage_summary(1.0, queue_us=10.0 * clients)}
        for clients in (1, 5, 10)
    }
    answers = extensions.stages(seen(sweeps.stages, 3, planted(stages=stages)))
    assert answers[0].sentence == "Not known: no stage was stamped."
    assert answers[1].sentence == (
        "With 10 clients and 5 workers a Lookup waits 100 µs for a thread, of 131 µs in the server. "
        "At most 5 threads ran Lookups in a block."
    )
    assert len(answers[1].details) == 3
