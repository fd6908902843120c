"""Results of servers alone and of cold runs, planted for tests."""

from collections.abc import Mapping, Sequence

from clients.load.record.cold_run import ColdRun
from experiments.design.setting import setting
from experiments.kinds.cold import Cold, ColdBlock, ColdCell, ColdSeen
from experiments.kinds.standalone import Alone, HeldSeen, LoneSeen, LoneServer, Repetition
from experiments.results.observed import RoundSeen

SOCKETS, GRPC = setting(transport="sockets"), setting(transport="grpc")

ALONE = Alone("study", "part", (LoneServer(SOCKETS, (1_000, 10_000)), LoneServer(GRPC)), 3, 5.0)

COLD = Cold("study", "part", tuple(ColdCell(each, n, 2) for each in (SOCKETS, GRPC) for n in (1, 10, 100)), 3)


def repetition(number: int, ready_ms: float, memory_mib: Sequence[float], idle_share: float) -> Repetition:
    """One of ``ALONE``; gRPC is ready after twice the time, and takes the first of the memories."""
    held = [
        HeldSeen(connections, memory, 9, round(idle_share * 5e9), 5_000_000_000)
        for connections, memory in zip(ALONE.servers[0].connections, memory_mib, strict=True)
    ]
    seen = LoneSeen(ready_ms, tuple(held)), LoneSeen(2 * ready_ms, (held[0],))
    return Repetition(number, "2026-01-01T00:00:00+00:00", 20.0, True, 900.0, 0, seen)


def cold_run(calls: int, first_us: float = 500.0, rest_us: float = 100.0, errors: Mapping[str, int] = {}) -> ColdRun:
    """A run; its errors are among the calls behind the first."""
    rest = calls - 1 - sum(errors.values())
    return ColdRun(200_000, round(first_us * 1000), round(rest * rest_us * 1000), rest, {"OK": rest + 1}, dict(errors))


def cold_block(number: int, runs: Sequence[tuple[int, ColdRun]], stolen: Sequence[int] = ()) -> ColdBlock:
    """Runs by their cells; those at the places ``stolen`` lost half a second of their one."""
    seen = [
        ColdSeen(cell, run, RoundSeen(1.0, 100 if place in stolen else 0)) for place, (cell, run) in enumerate(runs)
    ]
    return ColdBlock(number, "2026-01-01T00:00:00+00:00", 9.0, True, 900.0, 2, tuple(seen))
