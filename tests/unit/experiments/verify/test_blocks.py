"""Faults of blocks: each sentence of ``verify.blocks`` is yielded for a block with this fault."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.commands.verify import expected
from experiments.results import files
from experiments.results.observed import Block, RoundSeen
from experiments.verify import differences
from experiments.verify.blocks import block_faults, machine_faults
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, sweep, with_arm, with_slices
from tests.unit.experiments.judge.synthetic_blocks import answered as answered_by
from tests.unit.experiments.verify.edited import LOST_TICKS, answered, column, machine, numbers, of_places, slower

OF = sweep(looks=(10, 14))

BLOCKS = tuple(block(OF, {SOCKETS: 30.0, GRPC: 100.0}, number, 0.02, seed=number) for number in range(1, 11))

EditBlock = Callable[[Block], Block]


def again(one: Block) -> Block:
    """A second attempt of a block."""
    return block(OF, {SOCKETS: 30.0, GRPC: 100.0}, one.number, 0.02, seed=100 + one.number, attempt=2)


def robbed(one: Block) -> Block:
    """A block whose rounds all lost too much time. All rounds then count."""
    return replace(one, rounds=[RoundSeen(each.duration_s, LOST_TICKS) for each in one.rounds])


def cut(one: Block, rounds: int, lasted_s: float = 0.2) -> Block:
    """The first rounds of a block."""
    kept = [place for place, each in enumerate(one.slices.round) if each < rounds]
    return replace(of_places(one, kept), rounds=[RoundSeen(lasted_s, 0)] * rounds)


ATTEMPTS: dict[str, Callable[[], list[Block]]] = {
    r"block 2 has the attempts 1, 1, which do not count up from 1": lambda: [*BLOCKS[:2], *BLOCKS[1:]],
    r"block 2 was run again, although it had not lost": lambda: [*BLOCKS[:2], again(BLOCKS[1]), *BLOCKS[2:]],
    r"block 2 lost too much time, and was not run again": lambda: [BLOCKS[0], robbed(BLOCKS[1]), *BLOCKS[2:]],
    r"4 blocks were run again, allowed: 3": lambda: [
        *(each for one in BLOCKS[:4] for each in (robbed(one), again(one))),
        *BLOCKS[4:],
    ],
    r"block 2 and block 3 are the same": lambda: [*BLOCKS[:2], replace(BLOCKS[1], number=3), *BLOCKS[3:]],
    r"block 3 began at \S+, before block 2 had ended": lambda: [
        BLOCKS[0],
        replace(BLOCKS[1], duration_s=30.0),
        *BLOCKS[2:],
    ],
}

OF_SHAPE: dict[str, EditBlock] = {
    "columns of several lengths": lambda one: with_slices(one, requests=one.slices.requests[1:]),
    "no numbers of the type 'all'": lambda one: with_arm(one, 0, answered={}),
    "other arms or servers than its sweep has": lambda one: replace(one, starts=[99]),
}

OF_ONE: dict[str, EditBlock] = {
    r"not in the order that seed 1 draws": lambda one: of_places(one, [*reversed(range(len(one.slices.round)))]),
    r"did not start in the order that seed 1 draws": lambda one: replace(one, starts=[0] * len(OF.servers)),
    r"lasted 1\.00 s, and its rounds": lambda one: replace(one, duration_s=1.0),
    r"3 rounds of 15$": lambda one: cut(one, 3),
    r"14 rounds of 15, and there was time": lambda one: cut(one, 14),
    r"request types that do not add up": lambda one: with_slices(
        one, counts=dict(one.slices.counts) | {"lookup": [1, *one.slices.counts["lookup"][1:]]}
    ),
    r"request types that do not add up to all$": lambda one: with_slices(
        one, sums_ns=dict(one.slices.sums_ns) | {"lookup": [1, *one.slices.sums_ns["lookup"][1:]]}
    ),
    r"sockets\S*, request types that do not add up": lambda one: with_arm(
        one, 0, answered=dict(one.arms[0].answered) | {"lookup": answered_by(3)}
    ),
    r"more counted requests than requests": lambda one: column(one, "requests", 4, 1),
    r"lookup: .* in its slices, .* in its histogram": lambda one: slower(one, 8, -500_000),
    r"not of its count, sum, least and greatest": lambda one: answered(one, lambda each: numbers(each, squares=0)),
}

OF_MACHINE: dict[str, dict[str, object]] = {
    r"outside the time": {"at": "2026-01-01T00:00:20+00:00"},
    r"the hypervisor took": {"cpu_steal_s": 500.0},
    r"cores were busy for": {"cpu_busy_s": 10.0},
}


def said_of(every: list[Block]) -> list[str]:
    """Faults of blocks."""
    return list(block_faults(OF, every))


def test_whole_blocks_have_no_fault() -> None:
    """Blocks without an edit have no fault."""
    assert said_of(list(BLOCKS)) == []
    assert list(machine_faults(machine(BLOCKS), BLOCKS)) == []


@pytest.mark.parametrize("said", OF_SHAPE)
def test_a_block_of_another_shape_is_named_alone(said: str, tmp_path: Path) -> None:
    """A block with a wrong number of entries is named. Nothing else of the recording can be computed."""
    every = [*BLOCKS[:4], OF_SHAPE[said](BLOCKS[4]), *BLOCKS[5:]]
    files.write_plan(tmp_path, files.SWEPT, OF)
    for each in every:
        files.append_block(tmp_path, each)
    assert list(differences(tmp_path, expected)) == [f"{tmp_path}: block 5: {said}"]


@pytest.mark.parametrize("said", ATTEMPTS)
def test_a_fault_of_attempts_has_its_sentence(said: str) -> None:
    """Faults between blocks are named."""
    assert any(re.match(said, each) for each in said_of(ATTEMPTS[said]()))


@pytest.mark.parametrize("said", OF_ONE)
def test_a_fault_within_a_block_has_its_sentence(said: str) -> None:
    """A fault within a block is named, with the block's number."""
    found = said_of([*BLOCKS[:4], OF_ONE[said](BLOCKS[4]), *BLOCKS[5:]])
    assert any(re.match(rf"block 5: .*{said}", each) for each in found), found


@pytest.mark.parametrize("said", OF_MACHINE)
def test_a_contradiction_with_the_machine_has_its_sentence(said: str) -> None:
    """A contradiction with the machine's counts is named."""
    whole = machine(BLOCKS)
    assert list(machine_faults(replace(whole, after=None), BLOCKS)) == ["no record of the machine after the sweep"]
    assert whole.after is not None
    (found,) = machine_faults(replace(whole, after=replace(whole.after, **OF_MACHINE[said])), BLOCKS)  # type: ignore[arg-type]
    assert said in found
