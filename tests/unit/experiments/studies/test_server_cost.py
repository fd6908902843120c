"""The study of the server's cost: one factor a comparison, goals by the data, tables of all measurements."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.judge.standalone import StandaloneJudged, judged
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement, judge
from experiments.kinds.standalone import HeldSeen, LoneServer, StartSeen
from experiments.results.observed import Window
from experiments.services import PLAIN
from experiments.show.content import Seen
from experiments.show.tables import NO_BOUND
from experiments.studies.server_cost import SERVER_COST, real_clients, split
from experiments.studies.server_cost.goals import Goal, goals, option_goals, ratio_goals
from experiments.studies.server_cost.sweeps import (
    HELD,
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
from experiments.studies.study import Scale
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


@pytest.mark.parametrize("scale", SERVER_COST.scales.values(), ids=SERVER_COST.scales)
def test_every_profile_s_sweep_can_be_judged(scale: Scale) -> None:
    """Every profile's sweep has processor time alone, the transport on equal executors, and Lookup beside a bare echo:
    so often that a ratio near 1 is decided."""
    sweep = PART.sweep(scale)
    assert {each.measure for each in sweep.comparisons} == {"cpu"}
    transport, *echoes = sweep.comparisons[:3]
    assert transport.differ == ("transport",)
    assert {arm.setting["executor"] for arm in (transport.above, transport.below)} == {"static-pool"}
    for each in echoes:
        assert each.differ == ("service", "mix")
        assert (each.above.setting["mix"], each.below.setting["mix"]) == ("lookup", "echo")
        assert pairs(sweep, each) >= PAIRS_NEAR_1 * sweep.has_verdicts


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


def test_both_questions_are_answered_with_their_numbers() -> None:
    """The answers have the planted ratios: 105 ÷ 10.8, 1.08 and 1.05."""
    transport, service = PART.answers(Seen(planted(GOOD)))
    assert transport.sentence.startswith("A Lookup on gRPC with sockets' executor takes 9.7")
    assert transport.to_decide is None
    assert [each.comparison.name for each in transport.deciding] == ["transport"]
    assert [each.comparison.name for each in transport.further] == ["as_started", "executor"]
    assert [each.typical.value for each in service.deciding] == pytest.approx([1.08, 1.05], abs=0.01)
    assert re.search(r"A Lookup on sockets takes 1\.0[78]", service.sentence)


def test_the_sections_have_every_goal_every_arm_and_every_server() -> None:
    """The tables have every goal, arm and server. Without measurements of servers alone their table is left out."""
    judgement = planted(GOOD)
    told = {each.title: each.text for each in PART.sections(Seen(judgement, runs=(lone(130, 0.0, 0.002),)))}
    assert list(told) == ["Goals", "Arms", "Servers by themselves"]
    arms: list[Arm] = [arm for arm in judgement.sweep.arms if arm.name in told["Arms"]]
    assert len(arms) == 7
    for transport, held in HELD.items():
        for connections in held:
            assert f"| {transport} | {connections:,} |" in told["Servers by themselves"]
    without = PART.sections(Seen(judgement))
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


def test_the_split_is_told_drawn_and_tabled() -> None:
    """Each of the three servers has a sentence, a bar and a row."""
    seen, part = split_seen(), SERVER_COST.parts["split"]
    (answer,), (picture,), (section,) = part.answers(seen), part.pictures(seen), part.sections(seen)
    for server in ("sockets", "our own gRPC server", "grpcio"):
        assert f"A Lookup on {server} takes" in answer.sentence
        assert f"{server}: " in picture.alternative
        assert f"| {server} |" in section.text
    assert re.match(rf"{split.LOAD} A Lookup on sockets takes .* µs: kernel 40 ?%", answer.sentence)


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


def test_an_option_is_held_against_its_goal() -> None:
    """TLS at 1.25 and metrics at 1.02 meet their goals, and a token at 1.2 misses its goal. A store has no goal."""
    sweep = options(SMALL)
    planted_us = {"access=tls": 12.5, "access=token": 12.0, "metrics=yes": 10.2, "store=sqlite": 10.4}
    costs = {arm: next((us for said, us in planted_us.items() if said in arm.name), 10.0) for arm in sweep.arms}
    seen, part = Seen(judge(sweep, blocks(sweep, 10, taking(costs)))), "options"
    assert said(option_goals(seen.main)) == ["met", "MISSED", "met"]
    (answer,), (goal_rows, arms) = SERVER_COST.parts[part].answers(seen), SERVER_COST.parts[part].sections(seen)
    assert answer.sentence.startswith("A Lookup over TLS takes 1.25")
    assert len(answer.deciding) == 4
    assert goal_rows.text.count("at most") == 3
    assert "| sockets store=sqlite |" in arms.text.replace(" connections=16", "").replace(" client=lean", "")
    quick = options(SERVER_COST.scales["quick"])
    assert all(pairs(quick, each) >= PAIRS_NEAR_1 for each in quick.comparisons)


def test_what_python_costs_is_compared_where_the_peers_are_built() -> None:
    """Go and Rust are compared with our own gRPC server. Without these peers the sweep has our servers alone."""
    sweep = languages(SMALL)
    costs = {arm: 8.0 if arm.setting["language"] == "rust" else 24.0 for arm in sweep.arms}
    seen = Seen(judge(sweep, blocks(sweep, 10, taking(costs))))
    apart, python = SERVER_COST.parts["languages"].answers(seen)
    assert "A Lookup on sockets" in apart.sentence
    assert "A Lookup on tonic (Rust) takes 0.33" in python.sentence
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


@pytest.mark.slow
def test_clients_whose_calls_differ_are_told_drawn_and_tabled() -> None:
    """Details, tables and figure have the planted ratio of each kind of call, with "at least" where the client was at
    its limit."""
    seen, part = clients_seen(OURS_US, ["same"]), SERVER_COST.parts["real_clients"]
    (answer,), (_, section, others), (picture,) = part.answers(seen), part.sections(seen), part.pictures(seen)
    plain = [line for line in answer.details if "a plain grpcio server" in line]
    for sent, line in zip(("32 connections of 1 call", "4 connections of 16 calls"), plain, strict=True):
        begun, ratios = line.removesuffix(".").split("server: ")
        assert begun == f"With {sent} each, as a multiple of the calls of a plain grpcio "
        of = [each.partition(" (")[0] for each in ratios.split(", ")]
        assert of[0].startswith("at least ")
        planted = [400 / OURS_US[each] for each in real_clients.CALLS]
        assert [float(each.removeprefix("at least ")) for each in of] == pytest.approx(planted, rel=0.03)
    assert (len(answer.deciding), len(answer.further)) == (10, 20)
    tonic = [line for line in answer.details if re.search(r"of tonic: at least 0\.(49|50|51)", line)]
    assert len(tonic) == len(real_clients.LOADS)
    assert re.search(r"\| 4 × 16 \| all the same \| 7,500 \| (1\.9|2\.0)\d.*\| 7,500 \| 0\.(49|50|51)", others.text)
    assert "| 4 × 16 | a deadline of 2 s | 7,500 | 7,500 | " in section.text
    assert section.text.count("†") == 3
    assert "plain grpcio, a new traceparent" in picture.alternative
    assert part.answers(Seen(judge(seen.main.sweep, [])))[0].sentence == "Not measured."
    assert {each.setting["service"] for each in seen.main.sweep.arms} == {"stock", PLAIN}
    alone = clients_seen(OURS_US, [], replace(SMALL, peers=frozenset()), 2)
    assert [each.title for each in part.sections(alone)] == ["Goals", section.title]


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
