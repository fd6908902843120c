"""The study of the server's cost: one factor a comparison, goals by the data, tables of all measurements."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.judge.standalone import StandaloneJudged, judged
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement, Ruling, Verdict, judge
from experiments.kinds.standalone import HeldSeen, LoneServer, StartSeen
from experiments.results.observed import Window
from experiments.show.content import Seen
from experiments.show.tables import NO_BOUND
from experiments.studies.server_cost import SERVER_COST, real_clients, split, who_runs
from experiments.studies.server_cost.goals import Goal, goals, ratio_goals
from experiments.studies.server_cost.sweeps import (
    NULL_SERVER,
    SOCKETS,
    THREE,
    alone,
    echo_of,
    languages,
    options,
    server_cost,
    twice_of,
)
from experiments.studies.server_cost.sweeps import split as split_sweep
from experiments.studies.study import ProfileName, Scale
from tests.unit.experiments.apart_seen import block_of
from tests.unit.experiments.blocks import PAIRS_NEAR_1, SERVER_SHARE, World, blocks, pairs

PART = SERVER_COST.parts["server_cost"]

SMALL = Scale(rounds=4, looks=(10, 14), clients=(1,))

GOOD = {("sockets", "stock"): 10.8, ("sockets", "echo"): 10.0, ("grpc", "stock"): 105.0, ("grpc", "echo"): 100.0}
"""Processor time of a request in µs with which every goal is met."""

BAD = {**GOOD, ("sockets", "stock"): 15.0, ("grpc", "stock"): 111.0, ("grpc", "echo"): 100.0}


def taking(costs_us: Mapping[Arm, float]) -> World:
    """A world in which requests take this processor time of the server, with 1 % of noise in each slice."""
    return World(lambda arm, _: costs_us[arm] / SERVER_SHARE, slice_noise=0.01)


def planted(costs: Mapping[tuple[str, str], float], number: int = 10) -> Judgement:
    """Blocks of the study with these costs of a request."""
    sweep = server_cost(SMALL)
    by_arm = {arm: costs[arm.setting.text("transport"), arm.setting.text("service")] for arm in sweep.arms}
    return judge(sweep, blocks(sweep, number, taking(by_arm)))


def lone(ready_ms: float, idle_share: float, mib_each: float) -> StandaloneJudged:
    """Both servers alone, five times, with 1 % of noise in their start-up."""
    plan, watched_ns = alone(SMALL), 5_000_000_000

    def start(at: int, server: LoneServer) -> StartSeen:
        numbers = server.connections
        held = (HeldSeen(n, 16 + n * mib_each + at, 9, round(idle_share * watched_ns), watched_ns) for n in numbers)
        return StartSeen(ready_ms * (1 + at / 100), tuple(held))

    return judged(plan, [block_of(at + 1, [start(at, each) for each in plan.servers]) for at in range(plan.blocks)])


def said(found: tuple[Goal, ...]) -> list[str]:
    """The state of the goals."""
    return [each.said for each in found]


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_ratios_near_1_have_pairs_enough(profile: ProfileName) -> None:
    """A block has so many pairs of a Lookup with an echo, or with and without an option, that a ratio near 1 is
    decided."""
    main, with_options = (sweep(SERVER_COST.scales[profile]) for sweep in (server_cost, options))
    assert all(pairs(main, each) >= PAIRS_NEAR_1 for each in main.comparisons if "service" in each.differ)
    assert all(pairs(with_options, each) >= PAIRS_NEAR_1 for each in with_options.comparisons)


def test_goals_that_are_met_and_missed_are_told_apart() -> None:
    """Goals on ratios, start-up, idle processor time and memory are met by good values, and missed by bad values."""
    good = goals(planted(GOOD), lone(130, 0.0, 0.002).servers)
    assert set(said(good)) == {"met"}
    assert len(good) == 4 + 2 + (3 + 2) + 2
    bad = goals(planted(BAD), lone(600, 0.002, 0.03).servers)
    assert set(said(bad)) == {"MISSED"}


def test_a_goal_is_open_where_the_interval_reaches_past_it() -> None:
    """A goal inside the interval is open on either side of the value. One value has no interval."""
    for value, word in ((1.09, "met"), (1.11, "MISSED")):
        goal = Goal("x", "", 0, 1.10, Estimate(value, 1.0, 1.2, 9))
        assert goal.said == f"open: {word} by its value, but the interval reaches past the goal"
        assert Goal("x", "", 0, 1.10, Estimate(value, 0.0, 9.9, 1)).said == f"{word}, by one value without an interval"
    assert Goal("x", "", 0, 1.10, None).said == "not measured"


def test_nothing_is_said_of_a_goal_before_a_declared_look() -> None:
    """Nine of ten blocks give no verdict on a ratio's goal. Goals of servers alone need no look."""
    found = goals(planted(GOOD, number=9), lone(130, 0.0, 0.002).servers)
    assert said(found)[:4] == ["not concluded: no verdict yet"] * 4
    assert set(said(found)[4:]) == {"met"}


def test_without_servers_alone_their_table_is_left_out() -> None:
    """Without measurements of servers alone the goals of these servers are not measured, and no table has them."""
    without = PART.sections(Seen(planted(GOOD)))
    assert [each.title for each in without] == ["Goals", "Arms"]
    assert "not measured" in without[0].text


SPLIT_US = {"sockets": (13.0, 11.5), "grpc_static": (30.0, 28.0), "grpc": (150.0, 147.0)}
"""Costs of a Lookup and an echo, by transport."""


def split_seen(number: int = 3, kernel_of_null: float | None = 0.5) -> Seen:
    """Blocks in which an echo's second message takes 0.8 µs, and the null server 6 µs."""
    sweep = split_sweep(SMALL)
    costs = {Arm(base): SPLIT_US[base.text("transport")][0] for base in THREE}
    costs |= {Arm(echo_of(base)): SPLIT_US[base.text("transport")][1] for base in THREE}
    costs |= {Arm(twice_of(SOCKETS)): 12.3, Arm(NULL_SERVER): 6.0}
    kernel = dict.fromkeys(sweep.servers, 0.4) | {Arm(NULL_SERVER).server: kernel_of_null}
    every = []
    for one in blocks(sweep, number, taking(costs)):
        seen = zip(one.servers, kernel.values(), strict=True)
        every.append(replace(one, servers=[each and replace(each, kernel_share=share) for each, share in seen]))
    return Seen(judge(sweep, every))


def test_shares_are_the_planted_differences_and_add_up() -> None:
    """Shares of each server are the planted differences and add up: 40 % in the kernel, 3 µs of the null server, the
    second message, the exchange."""
    for found, (lookup_us, echo_us) in zip(split.splits(split_seen(20).main), SPLIT_US.values(), strict=True):
        scale = found.total_us / lookup_us
        shares = {name: each.value / scale for name, each in found.shares.items()}
        assert shares["kernel"] == pytest.approx(0.4 * lookup_us, rel=0.01)
        assert shares["interpreter"] == pytest.approx(3.0, rel=0.02)
        assert shares["protobuf"] == pytest.approx(0.8, abs=0.1)
        assert shares["service"] == pytest.approx(lookup_us - echo_us, abs=0.02 * lookup_us)
        assert sum(shares.values()) == pytest.approx(lookup_us)


@pytest.mark.parametrize(("grpc_us", "number", "said"), [(140.0, 3, split.SURELY_BELOW_0), (146.9, 3, split.BELOW_0)])
def test_a_share_under_0_is_told_with_its_reason(grpc_us: float, number: int, said: str) -> None:
    """A Lookup that takes less than an echo gives the service a negative share, which is told as it is. The reason
    differs with 0 in the interval of the share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SPLIT_US, "grpc", (grpc_us, 147.0))
        seen = split_seen(number)
        (answer,), (section,) = SERVER_COST.parts["split"].answers(seen), SERVER_COST.parts["split"].sections(seen)
    assert re.search(r"on grpcio takes .*service -\d", answer.sentence)
    reasons = {split.BELOW_0, split.SURELY_BELOW_0}
    assert reasons & set(answer.details) == {each for each in reasons if each in section.text} == {said}
    assert not reasons & set(SERVER_COST.parts["split"].answers(split_seen())[0].details)


def test_a_share_that_was_not_read_leaves_the_split_unknown() -> None:
    """Too little processor time for ticks, and an old recording without the share, leave the split unknown."""
    seen = split_seen(kernel_of_null=None)
    assert split.splits(seen.main) == ()
    assert SERVER_COST.parts["split"].answers(seen)[0].sentence.startswith("Not known")


def test_blocks_without_every_share_are_not_counted() -> None:
    """One block of three lacks a share: the numbers are means over two blocks."""
    first, *others = split_seen().main.blocks
    lacking = replace(first, servers=[each and replace(each, kernel_share=None) for each in first.servers])
    (answer,) = SERVER_COST.parts["split"].answers(Seen(judge(split_sweep(SMALL), [lacking, *others])))
    assert answer.estimand.endswith("Numbers are means over 2 blocks.")


def test_what_python_costs_is_compared_where_the_peers_are_built() -> None:
    """Without peers in Go and Rust the sweep has our servers alone."""
    without = replace(SMALL, peers=frozenset())
    assert {arm.setting["language"] for arm in languages(without).arms} == {"python"}
    assert SERVER_COST.parts["languages"].answers(Seen(judge(languages(without), [])))[1].sentence == "Not measured."


OURS_US = {"same": 100.0, "token": 850.0, "deadline": 200.0, "traceparent": 800.0, "2560B": 700.0}
"""Times of a call on our gRPC server, by ``headers``."""


def clients_seen(
    ours_us: Mapping[str, float], limited: Sequence[str], scale: Scale = SMALL, number: int = 10, also: str = ""
) -> Seen:
    """Blocks of clients on grpc-go. Calls with ``limited`` headers have the client at its limit on our server. Calls to
    other servers have the client at its limit if ``also`` is the server's language, or the headers of the calls."""
    others_us = {"python": 400.0, "go": 200.0, "rust": 50.0}

    def mean_us(arm: Arm, _: str) -> float:
        own = arm.setting["transport"] == "grpc_static"
        return ours_us[arm.setting.text("headers")] if own else others_us[arm.setting.text("language")]

    def busy(arm: Arm) -> float:
        if arm.setting["transport"] != "grpc_static":
            return 0.9 if also in (arm.setting["language"], arm.setting["headers"]) else 0.4
        return 0.9 if arm.setting["headers"] in limited else 0.4

    def answered(arm: Arm) -> tuple[Window, ...]:
        return tuple(Window(None, 0.0, hz, 0, 0, None) for hz in (20_000 / arm.connections, 40_000 / arm.connections))

    sweep = real_clients.sweep(scale)
    return Seen(judge(sweep, blocks(sweep, number, World(mean_us, client_share=busy, windows=answered))))


def test_clients_on_python_s_servers_alone_have_no_table_of_others() -> None:
    """Without the peers no table has servers in other languages. Without blocks nothing is told."""
    sweep, part = real_clients.sweep(replace(SMALL, peers=frozenset())), SERVER_COST.parts["real_clients"]
    seen = Seen(judge(sweep, []))
    assert [each.title for each in part.sections(seen)] == ["Goals", "Clients whose calls differ"]
    assert part.answers(seen)[0].sentence == "Not measured."


@pytest.mark.slow
def test_a_client_at_its_limit_on_the_other_server_makes_an_upper_bound() -> None:
    """The ratio is "at most" with the client at its limit on tonic alone. On both servers it is no bound."""
    seen = clients_seen(OURS_US, ["same"], also="rust")
    details = SERVER_COST.parts["real_clients"].answers(seen)[0].details
    tonic = [line for line in details if "of tonic: " in line]
    assert len(tonic) == len(real_clients.LOADS)
    for line in tonic:
        assert re.search(r"of tonic: 0\.\d+ \([^)]*\) † with equal calls, at most 0\.0\d+ \([^)]*\) with a token", line)
        assert line.endswith(NO_BOUND)
        assert "at least" not in line
    assert all("at most" not in line and "†" not in line for line in details if line not in tonic)


@pytest.mark.parametrize(
    ("deadline_us", "limited", "also", "state"),
    [
        (50.0, [], "", "met"),
        (50.0, ["deadline"], "", "met"),
        (200.0, ["deadline"], "", "not concluded: gate 7: client and server together determine the ratio"),
        (50.0, [], "python", "not concluded: gate 7: client and server together determine the ratio"),
        (200.0, [], "python", "MISSED"),
        (50.0, ["deadline"], "python", "not concluded: gate 7: client and server together determine the ratio"),
    ],
)
def test_a_goal_is_met_by_a_bound_on_its_side_alone(
    deadline_us: float, limited: Sequence[str], also: str, state: str
) -> None:
    """A lower bound over the goal meets "at least", and an upper bound under the goal misses it. Bounds on the other
    side, and a ratio with the client at its limit on both servers, decide nothing."""
    seen = clients_seen({**OURS_US, "deadline": deadline_us}, limited, replace(SMALL, peers=frozenset()), also=also)
    assert ratio_goals(seen.main, real_clients.GOALS)[0].said == state
    (at_most,) = ratio_goals(seen.main, [("deadline at 4 × 16", "", 0.0, 20.0)])
    assert (at_most.said == "met") == (not limited)
    (small,) = ratio_goals(seen.main, [("deadline at 4 × 16", "", 0.0, 1.0)])
    assert (small.said == "MISSED") == (not also)


@pytest.mark.parametrize(
    ("ours_us", "limited", "also", "said", "ends"),
    [
        (
            {"same": 1600.0},
            ["same"],
            "",
            "at most 0.5 to at least 2.0",
            "lowest exact ratio is with a token, the highest with a deadline of 2 s",
        ),
        (
            {"token": 50.0},
            ["same"],
            "",
            "0.5 to at least 8.0",
            "lowest exact ratio is with a new traceparent, the highest with a token",
        ),
        ({}, [*OURS_US], "", "at least 4.0", "highest ratio is with equal calls"),
        ({}, [], "", "0.5 to 4.0", "lowest ratio is with a token, the highest with equal calls"),
        (
            {},
            ["deadline"],
            "same",
            "at most 0.5 to at least 2.0",
            "lowest exact ratio is with a token, the highest with a deadline of 2 s",
        ),
    ],
)
def test_a_ratio_that_is_a_bound_is_said_to_be_one(
    ours_us: Mapping[str, float], limited: Sequence[str], also: str, said: str, ends: str
) -> None:
    """A ratio with the client at its limit on our server is a lower bound: never the least ratio, and the largest is
    "at least". With the client at its limit on grpcio, a ratio is neither the least nor the largest."""
    seen = clients_seen({**OURS_US, **ours_us}, limited, replace(SMALL, peers=frozenset()), also=also)
    sentence = re.sub(r" \([^)]*\)", "", SERVER_COST.parts["real_clients"].answers(seen)[0].sentence)
    rounded = re.sub(r"\d\.\d+", lambda ratio: f"{round(2 * float(ratio[0])) / 2}", sentence)
    found = re.findall(r"answers (.*?) times the calls of plain grpcio\. The (.*?)\.", rounded)
    assert found == [(said, ends)] * len(real_clients.LOADS)


def test_a_client_at_its_limit_on_grpcio_gives_no_range() -> None:
    """With the client at its limit on grpcio for every kind of call, no ratio is exact or a lower bound, and the answer
    says so."""
    seen = clients_seen(OURS_US, [], replace(SMALL, peers=frozenset()), also="python")
    (answer,) = SERVER_COST.parts["real_clients"].answers(seen)
    assert answer.sentence.count("no ratio is exact or a lower bound.") == len(real_clients.LOADS)


def test_a_limit_is_judged_over_the_blocks_that_count() -> None:
    """A block that a gate leaves out makes no bound, though the client was at its limit in that block alone."""
    seen = clients_seen(OURS_US, [], replace(SMALL, peers=frozenset()))
    one = seen.main.judged["deadline at 4 × 16"]
    busy = clients_seen(OURS_US, ["deadline"], replace(SMALL, peers=frozenset())).main.blocks
    kept = {number: value for number, value in one.log_ratios.items() if number != 1}
    mixed = replace(seen.main, blocks=(*busy[:1], *seen.main.blocks[1:]))
    first = replace(one, log_ratios={1: one.log_ratios[1]})
    assert mixed.limited(first) == (False, True)
    assert mixed.limited(replace(one, log_ratios=kept)) == (False, False)


@pytest.mark.slow
def test_an_open_pair_of_equal_servers_leaves_no_executor_open() -> None:
    """Every executor is decided. The A/A pair is not, and no command is said to decide it."""
    sweep = who_runs.sweep(SMALL)
    world = World(lambda arm, _: 20.0 if arm.setting["language"] == "c" else 100.0, block_noise=0.002)
    whole = judge(sweep, blocks(sweep, 10, world))
    (pair,) = whole.comparisons("same")
    judged = {**whole.judged, pair.comparison.name: replace(pair, rulings=(Ruling(1, 0.7, Verdict.INCONCLUSIVE, 224),))}
    asked = tuple(each for each in sweep.comparisons if each.name in judged)
    seen = Seen(replace(whole, sweep=replace(sweep, comparisons=asked), judged=judged))
    assert SERVER_COST.parts[who_runs.PART].answers(seen)[0].to_decide is None
