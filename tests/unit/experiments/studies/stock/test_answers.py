"""The four answers: what each tells, and where one is not decided, why and what would decide it."""

import re
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.judge.verdicts import Judgement
from experiments.show.content import Answer, Seen
from experiments.studies.stock import figures, sweeps
from experiments.studies.stock.answers import answers
from tests.unit.experiments.blocks import World, stage_summary
from tests.unit.experiments.studies.stock.judgements import (
    MEAN_US,
    SCALE,
    judgement,
    planted,
    seen,
    unplanted,
)

GRPC, SOCKETS = Arm(sweeps.GRPC), Arm(sweeps.SOCKETS)
STARTED = "As the servers were started: On the static pool and the thread pool"
EQUAL = Arm(sweeps.GRPC.but(executor="static-pool"))
STATIC = Arm(sweeps.STATIC)
TRADE = Arm(sweeps.GRPC.but(mix="trade"))
PAST_POOL = Arm(sweeps.SOCKETS.but(workers=5, clients=10))
GRPC_5, SOCKETS_5 = (Arm(base.but(clients=5)) for base in (sweeps.GRPC, sweeps.SOCKETS))


def of(world: World, blocks: int = 10) -> tuple[Answer, ...]:
    """The answers to the four questions."""
    return answers(seen(sweeps.stock, blocks, world))


def test_question_1_is_answered_as_started_and_for_equal_executors() -> None:
    """As started sockets are sooner, and with the static pool on both they are later. The answer has both, and the
    executor."""
    times = {SOCKETS: 400.0, Arm(sweeps.SOCKETS, 1): 400.0, EQUAL: 200.0, Arm(sweeps.GRPCIO, 1): 200.0}
    first = of(planted(times))[0]
    assert first.details[0].startswith(f"{STARTED}, a Lookup on sockets takes 0.800 of")
    assert first.sentence.startswith("With the static pool on both sides, a Lookup on sockets takes 2.000 times")
    assert first.details[2].startswith(
        "The executor alone: On gRPC with 1 client, a Lookup on the static pool takes 0.40"
    )
    names = ["as_started", "equal_executors", "plain", "protocol", "implementation"]
    assert [each.comparison.name for each in first.deciding] == names
    assert first.to_decide is None


def test_question_1_is_answered_beside_a_plain_grpcio_server() -> None:
    """The plain server's Lookup takes half as long as our own gRPC; the time that our code adds stands behind it."""
    plain = Arm(sweeps.GRPC.but(service="plain-grpcio"))
    first = of(planted({SOCKETS: 125.0, Arm(sweeps.SOCKETS, 1): 125.0, plain: 250.0}))[0]
    assert first.details[1].startswith("Beside a server that has none of our code: A Lookup on sockets takes 0.5")
    assert {each.comparison.name: round(each.typical.value, 1) for each in first.further}["our_code"] == 2.0


def test_question_1_tells_the_protocol_from_its_implementation() -> None:
    """Sockets take half of our own gRPC server's time, and that takes a quarter of grpcio's."""
    twins = {Arm(sweeps.SOCKETS, 1): 100.0, Arm(sweeps.STATIC, 1): 200.0}
    first = of(planted({SOCKETS: 100.0, STATIC: 200.0, EQUAL: 790.0, Arm(sweeps.GRPCIO, 1): 790.0, **twins}))[0]
    assert "Protocol and client: a Lookup on sockets takes 0.5" in first.sentence
    assert "Implementation: a Lookup on our own gRPC server takes 0.25" in first.sentence


def test_question_1_says_why_compare_has_other_ratios() -> None:
    """The kind of client, and the part that measures both."""
    assert any("lean client" in each and "run client_kind" in each for each in of(planted())[0].details)


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_questions_2_and_4_tell_each_growth(times: float) -> None:
    """Questions 2 and 4 have each growth, on each transport and past each pool, with means in milliseconds."""
    computing = [Arm(base.but(connections=10)) for base in sweeps.COMPUTING.values()]
    _, second, _, last = of(planted(dict.fromkeys((GRPC_5, SOCKETS_5, PAST_POOL, *computing), times * MEAN_US)))
    for name in ("on gRPC", "on sockets"):
        assert f"5 clients {name}" in second.sentence
        assert f"10 clients computing {name} have" in last.sentence
    assert [each.comparison.name for each in last.deciding] == list(sweeps.COMPUTING)
    assert "ms with 5 clients and" in last.details[0]
    assert last.details[1].startswith("10 clients on a pool of 5 threads have")


def test_question_2_says_what_littles_law_makes_of_it() -> None:
    """Growth in a closed loop follows from Little's law, and is not a finding on the server. The answer says so, and
    names a gain in rate."""
    second = of(planted({GRPC_5: 3 * MEAN_US, SOCKETS_5: 5 * MEAN_US}))[1]
    assert any("Little's law" in each for each in second.not_concluded)
    assert [each for each in second.details if "times as many requests" in each] == [
        "So on gRPC about 1.67 times as many requests a second are answered."
    ]


@pytest.mark.parametrize(
    ("limited", "said"),
    [
        ((3, 5), "up to 2 clients the load is not the limit."),
        ((2, 5), "with 2 clients the load is the limit too."),
        ((2, 3, 4, 5), "with fewer clients than 5 the load is the limit too."),
    ],
)
def test_the_load_is_free_up_to_the_first_number_where_it_is_the_limit(limited: tuple[int, ...], said: str) -> None:
    """A larger number at which it is free again moves nothing."""
    full = {Arm(sweeps.GRPC.but(clients=each)) for each in limited}
    world = planted({GRPC_5: 3 * MEAN_US}, client_share=lambda arm: 0.9 if arm in full else 0.4)
    main = judgement(sweeps.stock(replace(SCALE, clients=(1, 2, 3, 4, 5))), 10, world)
    assert answers(Seen(main))[1].details[0].startswith(f"On gRPC: {said}")


def test_question_4_gives_the_means_of_the_blocks_that_its_ratio_is_of() -> None:
    """A block that is left out of the ratio is left out of both means."""
    whole = seen(sweeps.stock, 10, planted(scatter=0.3))
    past = whole.main.judged["past_pool"]
    first = replace(past, log_ratios={number: past.log_ratios[number] for number in list(past.log_ratios)[:1]})
    partly = replace(whole.main, judged={**whole.main.judged, "past_pool": first})
    alone = replace(whole.main, blocks=whole.main.blocks[:1])
    said = [answers(Seen(each))[3].details[0] for each in (partly, alone, whole.main)]
    assert said[0] == said[1] != said[2]


def test_an_unfinished_sweep_has_numbers_and_no_verdict() -> None:
    """Three blocks of ten have the ratio so far, no verdict, and the command that goes on."""
    for answer in of(planted({SOCKETS: 150.0, TRADE: 600.0}), blocks=3):
        assert answer.sentence.startswith("No verdict. ")
        assert answer.to_decide == "To go on: `python -m experiments run stock --out FOLDER --resume`"


def test_without_a_block_nothing_is_known() -> None:
    """Each answer says so, and the command that measures."""
    for answer in of(planted(), blocks=0):
        assert answer.sentence.startswith("Not known: ")
        assert answer.deciding == ()
        assert answer.to_decide == "This would decide it: `python -m experiments run stock`"


def test_a_gate_that_leaves_out_every_block_is_named() -> None:
    """Errors in one arm leave its comparisons unknown, and touch no other."""
    first, _, third, last = of(planted(errors=[TRADE]))
    assert "Not known" in third.sentence
    assert "Gate 4 left out its blocks" in third.sentence
    assert third.to_decide is not None
    assert "gate" in third.to_decide
    assert "Not known" not in first.sentence + last.sentence


def test_halves_that_contradict_each_other_keep_the_verdict_back() -> None:
    """Gate 5 leaves the question undecided, with the halves in the place of a number of blocks."""
    third = of(planted({TRADE: 0.5 * MEAN_US}, later=lambda arm: 4.0 if arm == TRADE else 1.0))[2]
    assert "is not decided" in third.sentence
    assert "Gate 5 keeps the verdict back" in third.sentence
    assert "would decide" not in third.sentence
    assert third.to_decide == "More blocks do not mend what a gate found. Again: `python -m experiments run stock`"


def test_an_effect_smaller_than_equal_arms_showed_is_undecided() -> None:
    """Gate 20: gRPC's A/A pair differs by 20 %, so a Trade that takes 10 % longer is not said to."""
    third = of(planted({TRADE: 1.1 * MEAN_US, Arm(sweeps.GRPCIO, 1): 1.2 * MEAN_US}))[2]
    assert "is not decided" in third.sentence
    assert "Gate 20 keeps the verdict back" in third.sentence


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
    """No sentence of threads stands there where the part is not there, or lacks the figure's arms."""
    main = unplanted(number=2)
    unstamped = unplanted(sweeps.stages, 3)
    for after in ({}, {"stages": unstamped}):
        assert not any("Threads" in each.alternative for each in figures.main(Seen(main, after)))


def test_three_servers_have_a_line_each_for_either_request() -> None:
    """Three servers with one executor have a line each for either request, with their means by clients."""
    (picture,) = (each for each in figures.main(seen(sweeps.stock)) if each.name == "three")
    for request in ("Lookup", "Trade"):
        for server in ("sockets", "our own gRPC server", "grpcio"):
            assert re.search(f"{request}, {server}: 1: [^;]+; 5: [^;]+\\.", picture.alternative)


def test_with_one_number_of_clients_growth_is_not_known() -> None:
    """With one number of clients question 2 has no comparison, and the others are answered."""
    scale = type(SCALE)(rounds=2, looks=(10, 14), clients=(1,))
    main = judgement(sweeps.stock(scale), 10, planted())
    second = answers(Seen(main, {}))[1]
    assert "growth needs two numbers of clients, and this sweep has one." in second.sentence
    assert second.to_decide == "More blocks do not mend what a gate found. Again: `python -m experiments run stock`"


def test_the_lock_is_told_where_it_was_measured() -> None:
    """The answer has the lock's waits where their part was measured, and else the command."""
    assert "run lock_waits" in of(planted())[2].details[0]
    sweep = sweeps.lock_waits(SCALE)
    waits = judgement(sweep, 3, planted(stages={arm: {"lookup": stage_summary(0.5)} for arm in sweep.arms}))
    main: Judgement = unplanted()
    details = answers(Seen(main, {"lock_waits": waits}))[2].details
    assert details[0].startswith("A Lookup waits for the mutex on sockets with 5 clients: 0.500 µs")
