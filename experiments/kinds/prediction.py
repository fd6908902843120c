"""Predictions for a sweep's arms: ``foretold.json`` in the sweep's folder, written before the first block.

A prediction has the capacity, throughput and response time of a server under an arm's load. Numbers have six
significant digits, so every machine computes an equal file. The file ends with a digest of its content. If the file was
edited later, it is refused. Left out: the runs that measured the service demands (their blocks are in a subfolder), and
the method of a study's predictions.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from experiments.design.demands import Demands
from experiments.design.setting import Setting
from experiments.results.files import Form, digest, plan_text, read_plan, with_levels, with_settings, write_plan

FORETOLD_FILE = "foretold.json"


@dataclass(frozen=True, slots=True)
class Foretold:
    """Prediction for one arm, and the inputs of the prediction."""

    setting: Setting
    demands: Demands
    workers: int
    """Number of workers of each server process in the queueing model."""
    cores: float
    """Number of cores for the server. If the load runs on the same machine, the load takes some cores."""
    processes: int
    capacity_hz: float
    """Largest possible throughput, for any load, in requests per second."""
    limit: str
    """Bottleneck, the resource that limits the capacity: ``gil``, ``cores`` or ``workers``."""
    throughput_hz: float
    """Throughput of a closed loop, in replies per second. For an open loop, the smaller of the loop's rate and the
    capacity."""
    response_s: float
    """For a closed loop, the mean response time. For an open loop, the 99th percentile, or inf if the queue grows
    without end."""
    useful_workers: int
    """Smallest number of workers that reaches 95 % of the best throughput, with the number of clients of the arm."""
    knee_clients: float
    """Number of clients in a closed loop: with more clients, requests wait in a queue."""


Written = tuple[str, tuple[Foretold, ...]]
"""Time at which the predictions were written, in ISO 8601, and the predictions."""


def text(foretold: Sequence[Foretold], written_at: str) -> str:
    """Text of ``foretold.json`` with these predictions. ``written_at`` is the time in ISO 8601."""
    return plan_text(FORM, (written_at, tuple(foretold)))


def save(folder: Path, foretold: Sequence[Foretold], written_at: str) -> None:
    """Writes ``foretold.json`` in ``folder``. Raises OSError."""
    write_plan(folder, FORM, (written_at, tuple(foretold)))


def load(folder: Path) -> Written:
    """Reads the time of writing and the predictions from a folder. Raises UsageError if the folder has no readable
    ``foretold.json``."""
    return read_plan(folder, FORM)


def _plain(written: Written) -> dict[str, Any]:
    written_at, foretold = written
    plain = [with_levels(msgspec.to_builtins(_rounded(each))) for each in foretold]
    content = {"written_at": written_at, "foretold": plain}
    return content | {"digest": _digest(content)}


def _digest(content: dict[str, Any]) -> str:
    return digest(msgspec.json.encode(content)).decode()


def _read(content: dict[str, Any]) -> Written:
    """Time of writing and predictions, from a file's content. In JSON, null stands for an infinite time. Raises
    ValueError if the content was edited."""
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
