"""A comparison of two servers: the meaning of its words, its sentence, and its exit code."""

import json
import math
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.compare import command
from experiments.compare.outcome import (
    BEYOND_EXIT,
    UNDECIDED_EXIT,
    exit_code,
    outcome,
    parsed_limit,
    save,
    sentence,
    table,
    undecided,
)
from experiments.compare.sweep import LOOKS, side, sweep
from experiments.design.levels import Level
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.judge.verdicts import Judgement, judge
from experiments.measure.bench import CATALOG, bench
from experiments.results import environment
from experiments.results.observed import ALL
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import answered, block, blocks, with_arm, with_slices
from tests.unit.experiments.show.test_report import MACHINE

A, B = side("sockets", "grpc", {}), side("sockets workers=4", "grpc", {})


def planned(**load: Level) -> Sweep:
    """Plan of A and B under this load."""
    return sweep(A.but(**load), B.but(**load), LOOKS, 1)


def judged(ratio: float, number: int = 10, noise: float = 0.01, of: Sweep | None = None) -> Judgement:
    """Judgement on blocks in which B takes ``ratio`` times the time of A."""
    asked = of or planned()
    means = {arm: 100.0 * (ratio if arm.setting == B else 1.0) for arm in asked.arms}
    return judge(asked, blocks(asked, means, number, noise))


@pytest.mark.parametrize(
    ("words", "service", "transport"),
    [
        ("grpc workers=4", "stock", "grpc"),
        ("workers=4 transport=sockets", "stock", "sockets"),
        ("127.0.0.1:5001", "127.0.0.1:5001", "sockets"),
        ("./server --port 0", "./server --port 0", "sockets"),
    ],
)
def test_a_side_is_a_setting_an_address_or_a_command(words: str, service: str, transport: str) -> None:
    """The beginning tells a side's kind. An address or a command speaks the given transport."""
    found = side(words, "sockets", {"clients": 3})
    assert (found["service"], found["transport"], found["clients"]) == (service, transport, 3)


@pytest.mark.parametrize("words", ["", "  ", "sockets workers=0", "sockets no_factor=1"])
def test_other_words_are_refused(words: str) -> None:
    """Other words are refused in a line with the allowed ones."""
    with pytest.raises(UsageError):
        side(words, "grpc", {})


def test_a_mistyped_transport_is_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that is near a transport, and no program, is refused with the transport. A program of this name runs."""
    with pytest.raises(UsageError, match="did you mean grpc"):
        side("grcp workers=4", "grpc", {})
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/grcp")
    assert side("grcp", "grpc", {})["service"] == "grcp"


def test_too_few_blocks_for_two_pairs_are_refused() -> None:
    """Six blocks decide one A/A pair, and not the two pairs of two transports."""
    assert sweep(A, B, (6,), 1).has_verdicts
    grpc = side("grpc", "grpc", {})
    with pytest.raises(UsageError, match=r"--blocks: got '6'.*1 to 5 without a verdict, or 7 to 40"):
        sweep(A, grpc, (6,), 1)
    assert sweep(A, grpc, (7,), 1).has_verdicts
    assert not sweep(A, grpc, (5,), 1).has_verdicts


def test_a_disturbed_run_says_so_in_its_answer() -> None:
    """With over half of the blocks disturbed, the answer says that another run may give another ratio."""
    quiet = judged(1.2)
    robbed = [replace(each, rounds=[replace(r, steal_ticks=1000) for r in each.rounds]) for each in quiet.blocks]
    for count, is_said in ((5, False), (6, True)):
        mixed = judge(quiet.sweep, [*robbed[:count], *quiet.blocks[count:]])
        assert (f"Other programs disturbed {count} of 10 blocks: another run" in sentence(mixed)) == is_said


def test_one_process_is_not_compared_with_itself() -> None:
    """The same address twice is refused. Two servers of one setting are an A/A pair."""
    address = side("127.0.0.1:5001", "grpc", {})
    with pytest.raises(UsageError):
        sweep(address, address, LOOKS, 1)
    assert sweep(A, A, LOOKS, 1).comparisons[0].kind == "same"


def test_loads_that_slices_cannot_serve_take_windows() -> None:
    """Loads that slices cannot serve take windows without being asked."""
    for load in ({"rate_hz": 100.0}, {"client": "c"}, {"connections": 65}):
        assert planned(**load).turns == Windows()


@pytest.mark.parametrize(
    ("response_s", "turns"),
    [(0.0, Slices()), (0.004, Slices()), (0.005, Windows()), (0.05, Windows(duration_s=1.0)), (9, Windows(0.1, 3.0))],
)
def test_servers_that_answer_slowly_take_windows(response_s: float, turns: Slices | Windows) -> None:
    """Servers that answer in 5 ms or more take windows of twenty mean responses, up to three seconds."""
    assert sweep(A, B, LOOKS, 1, response_s=response_s).turns == turns


def test_between_looks_there_is_no_verdict() -> None:
    """After Ctrl-C the numbers are in the sentence and in the JSON, without a verdict."""
    stopped = judged(0.5, number=7)
    assert sentence(stopped).startswith("No verdict. B takes 0.5")
    assert sentence(stopped).endswith("A verdict needs at least 10 blocks; this run has 7 blocks.")
    assert outcome(stopped, MACHINE).verdict is None


@pytest.mark.parametrize(
    ("ratio", "limit", "code"),
    [
        (1.2, "slower>5%", BEYOND_EXIT),
        (1.02, "slower>5%", 0),
        (0.5, "slower>5%", 0),
        (1.05, "slower>5%", UNDECIDED_EXIT),
        (0.5, "faster>20%", BEYOND_EXIT),
        (0.9, "faster > 20 %", 0),
    ],
)
def test_the_exit_code_of_a_limit(ratio: float, limit: str, code: int) -> None:
    """The exit code is 4 where the whole interval is beyond the limit, 5 where the limit lies inside, else 0."""
    seen = judged(ratio)
    assert exit_code(seen, parsed_limit(limit)) == code
    assert exit_code(seen, None) == 0


@pytest.mark.parametrize("text", ["", "slower", "slower>5", "slower>-5%", "faster>100%", "p99>5%"])
def test_another_limit_is_refused(text: str) -> None:
    """Another form of a limit is refused with an example."""
    with pytest.raises(UsageError, match="slower>5%"):
        parsed_limit(text)


def test_a_limit_inside_the_interval_asks_for_more_blocks() -> None:
    """The sweep goes on while the limit lies inside the interval, though there is a verdict."""
    asked = sweep(A, B, LOOKS, 1, limit=1.2)
    assert judged(1.2, of=asked).decided is False
    assert judged(1.5, of=asked).decided is True


def test_equal_servers_are_told_of_by_their_setting() -> None:
    """Equal settings have the sentence of an A/A pair."""
    equal = sweep(A, A, LOOKS, 1)
    assert sentence(judged(1.0, of=equal)).startswith("Two equal servers (sockets) take the same time")


def test_processes_that_run_are_called_so() -> None:
    """Running processes are called processes: one process of a kind is not a sample of the kind."""
    one, other = (side(f"127.0.0.1:{port}", "sockets", {}) for port in (1, 2))
    running = sweep(one, other, LOOKS, 1)
    assert sentence(judged(1.0, of=running)).startswith("Of these two processes: B and A take")


def test_table_and_verdict_are_of_the_same_blocks() -> None:
    """Table and verdict are of the same blocks. A block that a gate left out is named with the reason."""
    asked = planned()
    measured = blocks(asked, dict.fromkeys(asked.arms, 100.0), noise=0)
    slow = block(asked, dict.fromkeys(asked.arms, 9000.0), 4)
    measured[3] = with_arm(slow, 0, answered={ALL: answered(900, 9e6, {"timeout": 100})})
    found = outcome(judge(asked, measured), MACHINE)
    assert found.ratio == pytest.approx(1.0)
    assert found.a.mean_us == pytest.approx(100, rel=0.01)
    assert found.a.errors == 0
    assert found.a.requests == sum(each.arms[0].answered[ALL].times.count for each in measured if each.number != 4)
    (said,) = found.left_out
    assert said.startswith("Block 4: gate 4: ")
    assert f"1 block of 10 left out. {said}" in "\n".join(table(found))


def test_blocks_that_are_all_left_out_show_nothing() -> None:
    """If all blocks are left out no number is shown."""
    asked = planned()
    failing = answered(900, 1e6, {"timeout": 100})
    measured = blocks(asked, dict.fromkeys(asked.arms, 100.0))
    found = outcome(judge(asked, [with_arm(each, 0, answered={ALL: failing}) for each in measured]), MACHINE)
    assert found.sentence.startswith("Nothing can be compared after 10 blocks. Block 1: gate 4: ")
    assert found.a.mean_us is found.b.mean_us is found.ratio is None


def test_what_a_load_does_not_record_is_absent_and_said() -> None:
    """A value that the load does not record is absent, and not zero. The gates that need it are named."""
    asked = planned(client="c", connections=16)
    measured = blocks(asked, dict.fromkeys(asked.arms, 100.0))
    unread = [0] * len(measured[0].slices.arm)
    measured = [with_slices(each, server_cpu_ns=unread, client_cpu_ns=unread, wire_bytes=unread) for each in measured]
    found = outcome(judge(asked, measured), MACHINE)
    assert found.load == "c connections=16"
    assert found.a.server_cpu_us is found.a.load_limited is None
    assert found.not_checked == ("gate 2: bytes on the wire", "gate 6: think times", "gate 7: its processor time")
    said = "\n".join(table(found))
    assert "Not checked, since c does not record these values: gate 2: bytes on the wire" in said
    assert "–   sockets workers=4" in said
    assert outcome(judged(1.0), MACHINE).not_checked == ()


def test_json_has_the_numbers_of_both_sides(tmp_path: Path) -> None:
    """JSON has the numbers of both sides, and null without a verdict."""
    save(outcome(judged(0.5), MACHINE), tmp_path / "o.json")
    found = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))
    assert found["verdict"] == "FASTER"
    assert found["low"] < found["ratio"] < found["high"] < 1
    assert found["a"]["mean_us"] == pytest.approx(100, rel=0.05)
    assert found["environment"]["cores"] >= 1


def test_a_full_disk_loses_no_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The result is printed, though its file cannot be written."""
    found = judged(0.5)
    monkeypatch.setattr(command, "measured", lambda *_: found)
    monkeypatch.setattr(command, "mean_response_s", lambda *_: 0.0)
    monkeypatch.setattr(environment, "load", lambda _: MACHINE)
    options = Namespace(blocks=None, seed=1, out=None, json=Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        command._compared(options, [A, B], bench(CATALOG), None)
    assert sentence(found) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ratio", "noise", "said"),
    [
        (1.04, 0.3, "In all over 1,000 blocks would decide it, and a comparison has 40 at most: measure on a quieter"),
        (1.03, 0.3, "In all about 218 blocks would decide it, and a comparison has 40 at most"),
        (1.0, 0.25, "In all about 19 blocks would decide it: --blocks 19."),
        (1.2, 0.2, ""),
    ],
)
def test_a_limit_that_is_not_decided_says_how_many_blocks_would(ratio: float, noise: float, said: str) -> None:
    """An undecided limit says how many blocks would decide, from the blocks' spread. A decided one says nothing."""
    seen = judged(ratio, noise=noise)
    found = undecided(seen, parsed_limit("slower>5%"))
    assert found == "" or found.startswith("slower>5% is not decided: it lies inside the interval.")
    assert said in found
    assert bool(found) is bool(said)
    assert undecided(seen, None) == ""


def test_a_percentile_that_is_absent_says_how_many_replies_would_do() -> None:
    """An absent percentile says how many replies would do: over a thousand where replies depend on each other."""
    asked = planned()
    whole = block(asked, dict.fromkeys(asked.arms, 100.0), 1)
    few = replace(whole.arms[0].answered[ALL], effective=450.0)
    found = outcome(judge(asked, [with_arm(whole, 0, answered={ALL: few})]), MACHINE)
    needed = math.ceil(found.a.requests * 1000 / 450)
    assert (found.a.p99_us, found.a.p99_needs, found.b.p99_needs) == (None, needed, None)
    assert any(line.endswith(f" are too few for A's p99: some {needed:,} are needed.") for line in table(found))
