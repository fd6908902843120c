"""Results of servers alone and of cold runs, planted for tests; and a run kept in a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from clients.load.record.cold_run import ColdRun
from experiments.design.setting import setting
from experiments.kinds import Plan, kind_of
from experiments.kinds.block import Block, Run
from experiments.kinds.cold import ColdCell, ColdPlan
from experiments.kinds.standalone import HeldSeen, LoneServer, StandalonePlan, StartSeen
from experiments.results.files import append_block, write_plan
from experiments.results.observed import RoundSeen

SOCKETS, GRPC = setting(transport="sockets"), setting(transport="grpc")

ALONE = StandalonePlan("study", "part", (LoneServer(SOCKETS, (1_000, 10_000)), LoneServer(GRPC)), 3, 5.0)

COLD = ColdPlan("study", "part", tuple(ColdCell(each, n, 2) for each in (SOCKETS, GRPC) for n in (1, 10, 100)), 3)


S = TypeVar("S")


def block_of(number: int, seen: Sequence[S], started_at: str = "2026-01-01T00:00:00+00:00") -> Block[S]:
    """A block in which each place of a plan was seen so, in the plan's order."""
    runs = tuple(Run(place, each) for place, each in enumerate(seen))
    return Block(number, started_at, 9.0, 2, 1000.0, runs)


def keep(folder: Path, plan: Plan, blocks: Sequence[Block[S]]) -> None:
    """Keeps a run in a folder, in the place of an earlier one."""
    form = kind_of(plan).form
    (folder / form.blocks_file).unlink(missing_ok=True)
    write_plan(folder, form, plan)
    for each in blocks:
        append_block(folder, each, form)


def repetition(number: int, ready_ms: float, memory_mib: Sequence[float], idle_share: float) -> Block[StartSeen]:
    """A repetition of ``ALONE``. gRPC is ready after twice the time, and takes the first of the memories."""
    held = [
        HeldSeen(connections, memory, 9, round(idle_share * 5e9), 5_000_000_000)
        for connections, memory in zip(ALONE.servers[0].connections, memory_mib, strict=True)
    ]
    return block_of(number, (StartSeen(ready_ms, tuple(held)), StartSeen(2 * ready_ms, (held[0],))))


def cold_run(calls: int, first_us: float = 500.0, rest_us: float = 100.0, errors: Mapping[str, int] = {}) -> ColdRun:
    """A run; its errors are among the calls behind the first."""
    rest = calls - 1 - sum(errors.values())
    return ColdRun(200_000, round(first_us * 1000), round(rest * rest_us * 1000), rest, {"OK": rest + 1}, dict(errors))


def cold_block(number: int, runs: Sequence[tuple[int, ColdRun]], stolen: Sequence[int] = ()) -> Block[ColdRun]:
    """Cold runs by their cells. Those at the places ``stolen`` lost half a second of one."""
    seen = tuple(
        Run(cell, run, RoundSeen(1.0, 100 if place in stolen else 0)) for place, (cell, run) in enumerate(runs)
    )
    return Block(number, "2026-01-01T00:00:00+00:00", 9.0, 2, 1000.0, seen)
