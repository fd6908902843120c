"""Predictions for a sweep's arms, with their time: ``foretold.json`` in its folder, written before its first block.

Numbers have six digits, so that another machine's arithmetic computes the same file. Left out: the blocks that gave the
demands, which lie in a folder inside; how a study predicts. The file ends with a digest of the rest, so that an edited
file is refused.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from experiments.design.demands import Demands
from experiments.design.setting import Setting
from experiments.results.files import Form, digest, plan_text, read_plan, write_plan
from experiments.results.plain import with_levels, with_settings

FORETOLD_FILE = "foretold.json"


@dataclass(frozen=True, slots=True)
class Foretold:
    """A prediction, and the values that it was computed from."""

    setting: Setting
    demands: Demands
    workers: int
    """Workers of each process in the model."""
    cores: float
    """Cores that the server may use: fewer than the machine has where the load runs on the same machine."""
    processes: int
    capacity_hz: float
    """Upper bound of the throughput, for any load."""
    limit: str
    """Resource that is busy at this bound: ``gil``, ``cores`` or ``workers``."""
    throughput_hz: float
    """Replies a second: of the closed loop; or of the open loop, its rate up to the capacity."""
    response_s: float
    """Mean response time of a closed loop; 99th percentile of an open loop, inf where the queue grows without end."""
    useful_workers: int
    """Size of the smallest pool that reaches 95 % of the throughput of any pool, with these clients."""
    knee_clients: float
    """Number of clients from which requests queue."""


Written = tuple[str, tuple[Foretold, ...]]
"""Time of writing, ISO 8601 as in blocks, and the predictions."""


def text(foretold: Sequence[Foretold], written_at: str) -> str:
    """Text of the file."""
    return plan_text(FORM, (written_at, tuple(foretold)))


def save(folder: Path, foretold: Sequence[Foretold], written_at: str) -> None:
    """Writes ``foretold.json``. Raises OSError."""
    write_plan(folder, FORM, (written_at, tuple(foretold)))


def load(folder: Path) -> Written:
    """Time of writing, and the predictions. UsageError where no file can be read."""
    return read_plan(folder, FORM)


def _plain(written: Written) -> dict[str, Any]:
    written_at, foretold = written
    plain = [with_levels(msgspec.to_builtins(_rounded(each))) for each in foretold]
    content = {"written_at": written_at, "foretold": plain}
    return content | {"digest": _digest(content)}


def _digest(content: dict[str, Any]) -> str:
    return digest(msgspec.json.encode(content)).decode()


def _read(content: dict[str, Any]) -> Written:
    """Time and predictions of a file's content. JSON has null for an infinite time. Raises ValueError for an edited
    file."""
    if content.pop("digest") != _digest(content):
        raise ValueError("it was edited")
    endless = [each | {"response_s": math.inf} if each["response_s"] is None else each for each in content["foretold"]]
    return content["written_at"], msgspec.convert(with_settings(endless), tuple[Foretold, ...], from_attributes=True)


FORM: Form[Written, object] = Form(FORETOLD_FILE, _plain, _read)


def _rounded(one: Foretold) -> Foretold:
    return replace(
        one,
        demands=Demands(*map(_digits, astuple(one.demands))),
        capacity_hz=_digits(one.capacity_hz),
        throughput_hz=_digits(one.throughput_hz),
        response_s=_digits(one.response_s),
        knee_clients=_digits(one.knee_clients),
    )


def _digits(value: float) -> float:
    return float(f"{value:.6g}")
