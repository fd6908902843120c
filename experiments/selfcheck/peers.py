"""Load clients that are none of ours, run side by side with it: what they are, how they are built, what they say.

=========  ========  ==================================================================================
name       speaks    what it is
=========  ========  ==================================================================================
``ghz``    gRPC      ghz 0.121.0, on grpc-go, with a worker for each connection
``h2load`` gRPC      nghttp2's, in C: HTTP/2 without gRPC above it, posting one message again and again
``go``     sockets   ``experiments/peers/go``, built here; as ghz, a worker for each connection
``c``      sockets   ``experiments/peers/c``, built here; one thread with epoll
=========  ========  ==================================================================================

All load in a closed loop, time a request from when they send it, and tell the server the timeout that our own client
does. What is absent is ``Absent``, with one line on how to get it. Percentiles are computed here, from every request's
time, where a program gives those; times of the warm-up are not in them. No program is given a network: Go builds from
what it has.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from experiments.selfcheck.load import STOCK, LoadFailed, finished, load_cores
from stock_service.rpc.errors import StockServiceError
from stock_service.rpc.transports import Address
from stock_service.trading.service import LOOKUP
from stock_service.v1 import stock_pb2

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools" / "bin"
PROTO = Path("stock_service/v1/stock.proto")
SOURCES = Path(__file__).resolve().parents[1] / "peers"

PAYLOAD = stock_pb2.LookupRequest(name=STOCK).SerializeToString()

TIMEOUT_MS = 5000
"""The load plan's own, so that a server has the same to do for every client."""

BUILD_S = 120.0
"""How long a program may take to build; Go's own library takes 20 s the first time."""

EXTRA_S = 30.0
"""How much longer than its load a program may take to start, report and end."""

_OFFLINE = {"GOPROXY": "off", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}


class Absent(StockServiceError):
    """A program is not here: says so, and how to get it, in one line."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A closed loop."""

    address: Address
    connections: int
    duration_s: float
    warm_up_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What a client saw. Times are service times, in µs."""

    requests: int
    throughput_hz: float
    p50_us: float
    p99_us: float


class Peer(Protocol):
    """One of the programs."""

    def load(self, ask: Ask) -> Reading:
        """Runs it on the load's core, to its end. Blocks; raises LoadFailed, also where any request failed."""


@contextmanager
def peers() -> Iterator[Mapping[str, Peer | Absent]]:
    """Every program by its name, built where it must be; or why it is absent. What was built is gone afterwards."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
        yield {
            "ghz": _there(TOOLS / "ghz", Ghz, "run make go-tools, which needs Go"),
            "h2load": _there(shutil.which("h2load"), H2load, "install nghttp2-client"),
            "go": _built("go", scratch),
            "c": _built("c", scratch),
        }


@dataclass(frozen=True, slots=True)
class Ghz:
    """See the table."""

    program: Path

    def load(self, ask: Ask) -> Reading:
        """See ``Peer``."""
        command = [str(self.program), "--insecure", "--proto", str(PROTO), "--import-paths", str(ROOT / "protos")]
        command += ["--call", LOOKUP.removeprefix("/"), "--data", json.dumps({"name": STOCK})]
        command += ["--concurrency", str(ask.connections), "--connections", str(ask.connections)]
        command += ["--duration", f"{ask.warm_up_s + ask.duration_s:g}s", "--duration-stop", "ignore"]
        command += ["--timeout", f"{TIMEOUT_MS}ms", "--format", "json"]
        command.append(f"{ask.address[0]}:{ask.address[1]}")
        said = finished(command, load_cores(), ask.warm_up_s + ask.duration_s + EXTRA_S, ROOT / "protos")
        details = _json("ghz", said)["details"] or []
        failed = [detail["status"] for detail in details if detail["status"] != "OK"]
        if failed:
            raise LoadFailed(f"ghz: {len(failed)} of {len(details)} requests failed, the first with {failed[0]}")
        began_s = np.array([datetime.fromisoformat(detail["timestamp"]).timestamp() for detail in details])
        took_s = np.array([detail["latency"] for detail in details]) / 1e9
        return _reading("ghz", began_s, took_s, ask)


@dataclass(frozen=True, slots=True)
class H2load:
    """See the table."""

    program: Path

    def load(self, ask: Ask) -> Reading:
        """See ``Peer``."""
        with tempfile.TemporaryDirectory() as scratch:
            body, log = Path(scratch) / "body", Path(scratch) / "log"
            body.write_bytes(b"\0" + len(PAYLOAD).to_bytes(4, "big") + PAYLOAD)
            command = [str(self.program), "--clients", str(ask.connections), "--max-concurrent-streams", "1"]
            command += ["--threads", "1", "--duration", f"{1000 * (ask.warm_up_s + ask.duration_s):.0f}ms"]
            command += ["--data", str(body), "--log-file", str(log)]
            command += ["--header", "content-type: application/grpc", "--header", "te: trailers"]
            command += ["--header", f"grpc-timeout: {TIMEOUT_MS}m"]
            command.append(f"http://{ask.address[0]}:{ask.address[1]}{LOOKUP}")
            finished(command, load_cores(), ask.warm_up_s + ask.duration_s + EXTRA_S)
            table = np.loadtxt(log, dtype=np.int64, ndmin=2)  # moment in µs, HTTP status, µs until the end
        failed = int((table[:, 1] != 200).sum()) if len(table) else 0
        if failed:
            raise LoadFailed(f"h2load: {failed} of {len(table)} requests failed")
        return _reading("h2load", table[:, 0] / 1e6, table[:, 2] / 1e6, ask)


@dataclass(frozen=True, slots=True)
class GoClient:
    """See the table."""

    program: Path

    def load(self, ask: Ask) -> Reading:
        """See ``Peer``."""
        command = [str(self.program), "-address", f"{ask.address[0]}:{ask.address[1]}", "-method", LOOKUP]
        command += ["-payload", PAYLOAD.hex(), "-connections", str(ask.connections), "-rate", "0"]
        command += [
            "-timeout",
            f"{TIMEOUT_MS}ms",
            "-warm-up",
            f"{ask.warm_up_s:g}s",
            "-duration",
            f"{ask.duration_s:g}s",
        ]
        said = finished(command, load_cores(), ask.warm_up_s + ask.duration_s + EXTRA_S)
        return _own_reading("the Go client", said)


@dataclass(frozen=True, slots=True)
class CClient:
    """See the table."""

    program: Path

    def load(self, ask: Ask) -> Reading:
        """See ``Peer``."""
        command = [str(self.program), ask.address[0], str(ask.address[1]), LOOKUP, PAYLOAD.hex(), str(TIMEOUT_MS)]
        command += [str(ask.connections), f"{ask.warm_up_s:g}", f"{ask.duration_s:g}", "0"]
        said = finished(command, load_cores(), ask.warm_up_s + ask.duration_s + EXTRA_S)
        return _own_reading("the C client", said)


def _there(program: Path | str | None, kind: type[Ghz] | type[H2load], how: str) -> Peer | Absent:
    """A program that is installed."""
    if program is None or not os.access(program, os.X_OK):
        return Absent(f"{kind.__name__.lower()} is absent: {how}")
    return kind(Path(program))


def _built(language: str, scratch: Path) -> Peer | Absent:
    """A program of ours in another language, compiled into a folder."""
    program = scratch / f"{language}-client"
    if language == "go":
        compiler, command = shutil.which("go"), ["build", "-o", str(program), "."]
        how = "install Go, see https://go.dev/doc/install"
    else:
        compiler, command = shutil.which("cc"), ["-O2", "-o", str(program), "load.c"]
        how = "install a C compiler as cc"
    if compiler is None:
        return Absent(f"the {language.capitalize()} client cannot be built: {how}")
    try:
        finished([compiler, *command], None, BUILD_S, SOURCES / language, _OFFLINE)
    except LoadFailed as failed:
        return Absent(f"the {language.capitalize()} client cannot be built: {failed}")
    return GoClient(program) if language == "go" else CClient(program)


def _reading(name: str, began_s: "np.ndarray[Any, Any]", took_s: "np.ndarray[Any, Any]", ask: Ask) -> Reading:
    """What a client saw after its warm-up, from every request's beginning and time."""
    if not len(began_s):
        raise LoadFailed(f"{name} made no request")
    late = began_s >= began_s.min() + ask.warm_up_s
    if not late.any():
        raise LoadFailed(f"{name} made no request after the warm-up")
    window_s = float((began_s + took_s)[late].max() - began_s[late].min())
    took_us = took_s[late] * 1e6
    p50_us, p99_us = (float(value) for value in np.percentile(took_us, [50, 99]))
    return Reading(int(late.sum()), int(late.sum()) / window_s, p50_us, p99_us)


def _own_reading(name: str, said: str) -> Reading:
    """What one of our programs in another language says."""
    document = _json(name, said)
    if document["errors"] or not document["requests"]:
        raise LoadFailed(f"{name}: {document['errors']} errors, {document['requests']} replies")
    return Reading(document["requests"], document["throughput_hz"], document["p50_us"], document["p99_us"])


def _json(name: str, said: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        document = json.loads(said)
        if isinstance(document, dict):
            return document
    raise LoadFailed(f"{name} said {said[:80]!r}, which is no report")
