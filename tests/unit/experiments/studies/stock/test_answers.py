"""The four answers: their sentences, and the reason and the command where an answer is not decided."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.show.content import Answer, Seen
from experiments.studies.stock import figures, sweeps
from experiments.studies.stock.answers import answers
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World
from tests.unit.experiments.studies.stock.judgements import MEAN_US, SCALE, judgement, only, planted, unplanted

GRPC, SOCKETS = Arm(sweeps.GRPC), Arm(sweeps.SOCKETS)
EQUAL = Arm(sweeps.GRPC.but(executor="static-pool"))
STATIC = Arm(sweeps.STATIC)
PLAIN = Arm(sweeps.GRPC.but(service="plain-grpcio"))
TRADE = Arm(sweeps.GRPC.but(mix="trade"))
PAST_POOL = Arm(sweeps.SOCKETS.but(workers=5, clients=10))
GRPC_5 = Arm(sweeps.GRPC.but(clients=5))

GROWTHS = ("growth_grpc", "growth_sockets")


def of(world: World, *names: str, blocks: int = 10, scale: Scale = SCALE, arms: Iterable[Arm] = ()) -> list[Answer]:
    """The answers to the four questions, by the comparisons of these names."""
    main = judgement(only(sweeps.stock(scale), *names, arms=arms), blocks, world)
    return [*answers(Seen(main))]


@pytest.mark.parametrize(
    ("limited", "said"),
    [
        ((3, 5), "up to 2 clients the load is not the limit."),
        ((2, 5), "with 2 clients the load is the limit too."),
        ((2, 3, 4, 5), "with 2 clients the load is the limit too."),
    ],
)
def test_the_load_is_free_up_to_the_first_number_where_it_is_the_limit(limited: tuple[int, ...], said: str) -> None:
    """A larger number at which the load is free again moves nothing."""
    arms = [Arm(sweeps.GRPC.but(clients=each)) for each in range(1, 6)]
    full = {arm for arm in arms if arm.connections in limited}
    world = planted({GRPC_5: 3 * MEAN_US}, client_share=lambda arm: 0.9 if arm in full else 0.4)
    found = of(world, "growth_grpc", scale=replace(SCALE, clients=(1, 2, 3, 4, 5)), arms=arms)
    assert found[1].details[0].startswith(f"On gRPC: {said}")


def test_nothing_is_said_of_numbers_of_clients_that_were_not_measured() -> None:
    """With 1 client and 5 alone, no sentence says that the load is the limit with fewer than 5."""
    world = planted({GRPC_5: 3 * MEAN_US}, client_share=lambda arm: 0.9 if arm == GRPC_5 else 0.4)
    assert not any("the load is" in each for each in of(world, "growth_grpc")[1].details)


def test_question_4_gives_the_means_of_the_blocks_that_its_ratio_is_of() -> None:
    """Both mean latencies leave out the blocks that the ratio leaves out."""
    whole = judgement(only(sweeps.stock(SCALE), "past_pool"), 10, planted(scatter=0.3))
    past = whole.judged["past_pool"]
    first = replace(past, log_ratios={number: past.log_ratios[number] for number in list(past.log_ratios)[:1]})
    partly = replace(whole, judged={"past_pool": first})
    alone = replace(whole, blocks=whole.blocks[:1])
    said = [answers(Seen(each))[3].details[0] for each in (partly, alone, whole)]
    assert said[0] == said[1] != said[2]


def test_an_unfinished_sweep_has_numbers_and_no_verdict() -> None:
    """After three blocks of ten an answer has the ratio so far, no verdict, and the command that goes on."""
    for answer in answers(Seen(unplanted(number=3))):
        assert answer.sentence.startswith("No verdict. ")
        assert answer.to_decide == "To go on: `python -m experiments run stock --out FOLDER --resume`"


def test_without_a_block_nothing_is_known() -> None:
    """Without a block each answer says that nothing is known, and names the command that measures."""
    for answer in answers(Seen(unplanted(number=0))):
        assert answer.sentence.startswith("Not known: ")
        assert answer.deciding == ()
        assert answer.to_decide == "This would decide it: `python -m experiments run stock`"


def test_a_gate_that_leaves_out_every_block_is_named() -> None:
    """Errors in one arm leave the arm's comparisons unknown, and no other comparison."""
    _, second, third, _ = of(planted(errors=[TRADE]), "trade", *GROWTHS)
    assert "Not known" in third.sentence
    assert "Gate 4 left out the blocks" in third.sentence
    assert str(third.to_decide).startswith("More blocks do not help, since a gate refused data. ")
    assert "Not known" not in second.sentence


def test_a_verdict_that_a_gate_keeps_back_asks_for_no_more_blocks() -> None:
    """Gate 5 leaves the question undecided, and names the halves of the blocks in place of a number of blocks."""
    third = of(planted({TRADE: 0.5 * MEAN_US}, later=lambda arm: 4.0 if arm == TRADE else 1.0), "trade")[2]
    assert "is not decided" in third.sentence
    assert "Gate 5 refuses a verdict" in third.sentence
    assert str(third.to_decide).startswith("More blocks do not help, since a gate refused data. ")


def test_a_recording_without_stamps_says_nothing_of_threads() -> None:
    """A figure says nothing of threads where the part ``stages`` is absent, or lacks the figure's arms."""
    main = unplanted(number=2)
    unstamped = unplanted(sweeps.stages, 3)
    for after in ({}, {"stages": unstamped}):
        assert not any("Threads" in each.alternative for each in figures.main(Seen(main, after)))


def test_with_one_number_of_clients_growth_is_not_known() -> None:
    """With one number of clients question 2 has no comparison, and question 3 is answered."""
    scale = replace(SCALE, clients=(1,))
    names = {each.name for each in sweeps.stock(scale).comparisons}
    assert not names & {*GROWTHS}
    _, second, third, _ = of(planted(), "trade", scale=scale)
    assert "growth needs two numbers of clients, and this sweep has one." in second.sentence
    assert str(second.to_decide).startswith("More blocks do not help, since a gate refused data. ")
    assert "take the same time" in third.sentence


def test_a_part_that_was_not_measured_has_its_command() -> None:
    """Questions 3 and 4 have the commands of the parts that measure lock waits and a Lookup that waits."""
    _, _, third, last = answers(Seen(unplanted(number=2)))
    assert "run lock_waits" in third.details[0]
    assert any("run past_pool" in each for each in last.details)
