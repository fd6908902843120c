"""Rows of ``results.csv``: one row for each block, arm and request type, computed from the blocks.

An arm is a server under a load. The first columns are the study, the part, the block, the attempt and the arm. The next
columns are the factors, in the order of ``FACTORS``. The other columns are measured values. A cell is empty if its
value was not measured or does not exist. Left out: values over several blocks.
"""

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence

from experiments.design.levels import shown
from experiments.design.sweep import Sweep
from experiments.results.observed import ALL, FATES, KEPT, Answered, ArmSeen, Block

ROWS_FILE = "results.csv"

Cell = str | int | float | None


def table(sweep: Sweep, blocks: Sequence[Block], without: Collection[str] = ()) -> str:
    """CSV text of these blocks: a header, and a row for each block, arm and request type. ``without`` has the names of
    the columns that are left out.
    """
    text, every = io.StringIO(), [row for block in blocks for row in rows(sweep, block)]
    columns = [name for name in (every[0] if every else ()) if name not in without]
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(every)
    return text.getvalue()


def rows(sweep: Sweep, block: Block) -> Iterator[dict[str, Cell]]:
    """Rows of one block. An arm has a row for each request type, and a last row for ``all``."""
    for number, arm in enumerate(sweep.arms):
        seen = block.arms[number]
        place: dict[str, Cell] = {
            "study": sweep.study,
            "part": sweep.part,
            "block": block.number,
            "attempt": block.attempt,
            "arm": arm.name,
            "copy": arm.copy,
        }
        levels = {name: shown(level) for name, level in arm.setting.levels}
        server = block.servers[sweep.servers.index(arm.server)] if block.servers else None
        own = _of_arm(block, number, seen) | {
            "server_threads": server.threads if server else None,
            "server_connections": server.connections if server else None,
            "server_memory_mib": round(server.memory_mib, 2) if server else None,
        }
        for request, answered in seen.answered.items():
            requests = _of_request(block, number, request, answered, arm.connections)
            stages = seen.stages.get(request)
            machine: dict[str, Cell] = {
                "lock_wait_us_mean": _rounded(stages.lock_wait.mean_us) if stages else None,
                "calibration_us": round(block.calibration_us, 1),
                "pinned": int(block.pinned),
            }
            yield place | levels | {"request": request} | requests | own | machine


def counts_text(counts: Mapping[str, int]) -> str:
    """Text with the count of each kind, such as ``unavailable:2 never_sent:1``."""
    return " ".join(f"{kind}:{count}" for kind, count in counts.items())


def _of_request(block: Block, arm: int, request: str, answered: Answered, connections: int) -> dict[str, Cell]:
    """Columns of one request type of an arm, such as its percentiles and throughput."""
    of = answered.times.distribution()
    columns = zip(block.slices.counted_ns, block.slices.arm, block.slices.fate, strict=True)
    counted_s = sum(ns for ns, each, fate in columns if each == arm and fate == KEPT) / 1e9
    throughput_hz = answered.times.count / counted_s if counted_s else None
    return {
        "count": answered.times.count,
        "errors": sum(answered.errors.values()),
        "error_kinds": counts_text(answered.errors),
        "outcomes": counts_text(answered.outcomes),
        "response_us_mean": _rounded(of.mean_us),
        "response_us_p50": _rounded(of.p50_us),
        "response_us_p90": _rounded(of.p90_us),
        "response_us_p99": _rounded(of.p99_us),
        "response_us_p999": _rounded(of.p999_us),
        "response_us_max": _rounded(of.max_us),
        "response_us_stddev": _rounded(of.stddev_us),
        "effective_count": _rounded(answered.effective),
        "throughput_hz": _rounded(throughput_hz),
        "n_over_x_us": _rounded(connections / throughput_hz * 1e6) if throughput_hz and request == ALL else None,
    }


def _of_arm(block: Block, arm: int, seen: ArmSeen) -> dict[str, Cell]:
    """Columns that are equal in all rows of an arm, such as the server's processor time."""
    own = [place for place, each in enumerate(block.slices.arm) if each == arm]

    def total(column: Sequence[int]) -> int:
        return sum(column[place] for place in own)

    def each(column: Sequence[int], of: float) -> float | None:
        """Sum of a column over the arm's slices ÷ ``of``. None for a sum of 0, since 0 stands for an unknown value."""
        return _rounded(total(column) / of) if of and total(column) else None

    requests, active_ns = total(block.slices.requests), total(block.slices.active_ns)
    count = seen.answered[ALL].times.count
    lost = [FATES[block.slices.fate[place]] for place in own if block.slices.fate[place] != KEPT]
    late = [window.late_us_p99 for window in seen.windows if window.late_us_p99 is not None]
    return {
        "think_us_mean": _rounded(seen.think_ns / count / 1000) if count and seen.span_ns else None,
        "server_cpu_us": each(block.slices.server_cpu_ns, 1000 * requests),
        "client_cpu_share": each(block.slices.client_cpu_ns, active_ns),
        "wire_bytes": each(block.slices.wire_bytes, requests),
        "updates": seen.updates,
        "starved_clients": sum(window.starved_clients for window in seen.windows),
        "late_us_p99": _rounded(max(late)) if late else None,
        "slices_kept": len(own) - len(lost),
        "slices_lost": counts_text({fate: lost.count(fate) for fate in dict.fromkeys(lost)}),
    }


def _rounded(value: float | None) -> float | None:
    """Number rounded to six significant digits, which are more than the measurement's precision."""
    return None if value is None else float(f"{value:.6g}")
