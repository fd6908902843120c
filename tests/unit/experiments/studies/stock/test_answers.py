"""The four answers: their sentences, and the reason and the command where an answer is not decided."""

import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.show.content import Answer, Seen
from experiments.studies.stock import figures, sweeps
from experiments.studies.stock.answers import answers
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, stage_summary
from tests.unit.experiments.studies.stock.judgements import MEAN_US, SCALE, judgement, only, planted, unplanted

GRPC, SOCKETS = Arm(sweeps.GRPC), Arm(sweeps.SOCKETS)
EQUAL = Arm(sweeps.GRPC.but(executor="static-pool"))
STATIC = Arm(sweeps.STATIC)
PLAIN = Arm(sweeps.GRPC.but(service="plain-grpcio"))
TRADE = Arm(sweeps.GRPC.but(mix="trade"))
PAST_POOL = Arm(sweeps.SOCKETS.but(workers=5, clients=10))
GRPC_5, SOCKETS_5 = (Arm(base.but(clients=5)) for base in (sweeps.GRPC, sweeps.SOCKETS))

QUESTION_1 = ("as_started", "equal_executors", "plain", "protocol", "implementation")
GROWTHS = ("growth_grpc", "growth_sockets")


def of(world: World, *names: str, blocks: int = 10, scale: Scale = SCALE, arms: Iterable[Arm] = ()) -> list[Answer]:
    """The answers to the four questions, by the comparisons of these names."""
    main = judgement(only(sweeps.stock(scale), *names, arms=arms), blocks, world)
    return [*answers(Seen(main))]


def test_question_1_is_answered_by_every_pair_of_servers() -> None:
    """Question 1 has the servers as started, with equal executors, beside a plain server, and on three servers with one
    executor; the times of the executor and of our code stand behind it."""
    times = {GRPC: 500.0, SOCKETS: 400.0, EQUAL: 200.0, STATIC: 800.0, PLAIN: 250.0}
    first = of(planted(times), *QUESTION_1, "executor", "our_code", "trade")[0]
    started = "As the servers were started: On the static pool and the thread pool, a Lookup on sockets takes 0.800 of"
    assert first.details[0].startswith(started)
    assert first.details[1].startswith("Beside a server that has none of our code: A Lookup on sockets takes 1.5")
    assert first.details[2].startswith(
        "The executor alone: On gRPC with 1 client, a Lookup on the static pool takes 0.40"
    )
    assert first.sentence.startswith("With the static pool on both sides, a Lookup on sockets takes 2.000 times")
    assert "Protocol and client: a Lookup on sockets takes 0.5" in first.sentence
    assert "Implementation: a Lookup on our own gRPC server takes 4.0" in first.sentence
    assert [each.comparison.name for each in first.deciding] == [*QUESTION_1]
    assert {each.comparison.name: round(each.typical.value, 1) for each in first.further} == {
        "executor": 0.4,
        "our_code": 2.0,
    }
    assert first.to_decide is None
    assert any("lean client" in each and "run client_kind" in each for each in first.details)


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_questions_2_and_4_tell_each_growth(times: float) -> None:
    """Questions 2 and 4 have each growth, on each transport and past each pool, with means in milliseconds."""
    computing = [Arm(base.but(connections=10)) for base in sweeps.COMPUTING.values()]
    world = planted(dict.fromkeys((GRPC_5, SOCKETS_5, PAST_POOL, *computing), times * MEAN_US))
    _, second, _, last = of(world, *GROWTHS, *sweeps.COMPUTING, "past_pool")
    for name in ("on gRPC", "on sockets"):
        assert f"5 clients {name}" in second.sentence
        assert f"10 clients with computing Lookups {name} have" in last.sentence
    assert [each.comparison.name for each in last.deciding] == list(sweeps.COMPUTING)
    assert "ms with 5 clients and" in last.details[0]
    assert last.details[1].startswith("10 clients on a pool of 5 threads have")


def test_question_2_says_what_littles_law_makes_of_it() -> None:
    """The answer says that growth in a closed loop follows from Little's law, and names the gain in rate."""
    second = of(planted({GRPC_5: 3 * MEAN_US, SOCKETS_5: 5 * MEAN_US}), *GROWTHS)[1]
    assert any("Little's law" in each for each in second.not_concluded)
    assert [each for each in second.details if "times as many requests" in each] == [
        "So gRPC answered about 1.67 times as many requests a second."
    ]


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


def test_figures_4_and_5_say_how_many_threads_ran_the_requests() -> None:
    """Figures 4 and 5, and no others, have the threads that ran the requests, for every stamped number of clients."""
    sweep = sweeps.stages(SCALE)
    stamped = {each: {"all": stage_summary(70.0, queue_us=400.0)} for each in sweep.arms}
    after = {"stages": judgement(sweep, 3, planted(stages=stamped, scatter=0.0002))}
    drawn = {each.name: each.alternative for each in figures.main(Seen(unplanted(number=2), after))}
    assert "Threads that ran requests: 1: 5; 5: 5." in drawn["figure_4"]
    assert "Threads at work at once, on average: 1: 0.2; 5: 1.0." in drawn["figure_4"]
    assert "Threads that ran requests: 1: 5; 5: 5; 6: 5; 7: 5; 8: 5; 9: 5; 10: 5." in drawn["figure_5"]
    assert not any("Threads" in drawn[name] for name in ("figure_1", "figure_2", "figure_3"))


def test_a_recording_without_stamps_says_nothing_of_threads() -> None:
    """A figure says nothing of threads where the part ``stages`` is absent, or lacks the figure's arms."""
    main = unplanted(number=2)
    unstamped = unplanted(sweeps.stages, 3)
    for after in ({}, {"stages": unstamped}):
        assert not any("Threads" in each.alternative for each in figures.main(Seen(main, after)))


def test_three_servers_have_a_line_each_for_either_request() -> None:
    """Three servers with one executor have a line each for either request, with their means by clients."""
    (picture,) = (each for each in figures.main(Seen(unplanted(number=2))) if each.name == "three")
    for request in ("Lookup", "Trade"):
        for server in ("sockets", "our own gRPC server", "grpcio"):
            assert re.search(f"{request}, {server}: 1: [^;]+; 5: [^;]+\\.", picture.alternative)


def test_with_one_number_of_clients_growth_is_not_known() -> None:
    """With one number of clients question 2 has no comparison, and question 3 is answered."""
    scale = replace(SCALE, clients=(1,))
    names = {each.name for each in sweeps.stock(scale).comparisons}
    assert not names & {*GROWTHS}
    _, second, third, _ = of(planted(), "trade", scale=scale)
    assert "growth needs two numbers of clients, and this sweep has one." in second.sentence
    assert str(second.to_decide).startswith("More blocks do not help, since a gate refused data. ")
    assert "take the same time" in third.sentence


def test_the_lock_is_told_where_it_was_measured() -> None:
    """The answer has the lock's waits where the part ``lock_waits`` was measured, and else the command."""
    main = unplanted(number=2)
    assert "run lock_waits" in answers(Seen(main))[2].details[0]
    locked = Arm(sweeps.SOCKETS.but(mix=sweeps.MIXED, clients=5))
    sweep = only(sweeps.lock_waits(SCALE), arms=[locked])
    waits = judgement(sweep, 3, planted(stages={locked: {"lookup": stage_summary(0.5)}}))
    details = answers(Seen(main, {"lock_waits": waits}))[2].details
    assert details[0].startswith("A Lookup waits for the mutex on sockets with 5 clients: 0.500 µs")
