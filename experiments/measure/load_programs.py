"""Load programs other than our own client: builds each program, runs the program, and reads its report.

===========  ========  ================================================================================
name         speaks    what it is
===========  ========  ================================================================================
``ghz``      gRPC      ghz 0.121.0, on grpc-go, with a worker for each connection
``h2load``   gRPC      a program of nghttp2, in C: HTTP/2 without gRPC, which posts one message again and again
``grpc-go``  gRPC      ``experiments/peers/go/grpc_load``, built by ``make peers``: headers may differ in each call
``go``       sockets   ``experiments/peers/go/socketload``, built here; like ghz, a worker for each connection
``c``        sockets   ``experiments/peers/c/load.c``, built here; one thread with epoll
``c-http``   HTTP/1.1  ``experiments/peers/c/http_load.c``, built here; a connection for each request, on demand
===========  ========  ================================================================================

Each program sends one request again and again in a closed loop. ``grpc-go`` can also send in an open loop. A request's
time begins at its send; in an open loop, when the request was due. With each request, the programs send the timeout of
our own client. But ``grpc-go`` sends a timeout only on demand: its library sends the time that is left until the
deadline, which differs from call to call. A missing program is ``Absent``, whose text says in one line how to get the
program. If a program reports the time of every request after the warm-up, these times are read. No build needs a
network: Go builds from the installed modules. ``compare --load`` and ``selfcheck`` use the programs.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clients.load.plan.schedule import Arrivals
from clients.load.record.times import Times
from experiments.design.factors import HEADERS, LOAD_PROGRAMS, SAME
from experiments.measure import http_load
from experiments.measure.http_load import HttpAsk
from experiments.measure.programs import ProgramFailed, finished, reported
from experiments.peers import BUILT, Absent, is_built, why_absent
from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.transports import Address
from stock_service.v1 import stock_pb2

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools" / "bin"
PROTO = Path("stock_service/v1/stock.proto")
SOURCES = Path(__file__).resolve().parents[1] / "peers"

TIMEOUT_MS = 5000
"""Timeout that a program sends with each request, in ms. Our own client sends the same timeout, and so the server has
equal work for every client."""

BUILD_S = 120.0
"""Longest time for the build of a program, in seconds. The first build, which also builds Go's own library, takes 20 s.
"""

EXTRA_S = 30.0
"""Longest time in seconds that a program may take in addition to its load: for its start, report and end."""

_GO_PEER = "go-stock"
"""Name of the peer whose build (``make peers``) also builds ``grpc-go``."""

_Report = dict[str, Any]
"""Report of a program: an object of JSON."""

_OFFLINE = {"GOPROXY": "off", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}


@dataclass(frozen=True, slots=True)
class Ask:
    """Options of one run of a load program. The loop is closed, or with ``rate_hz`` open."""

    address: Address
    path: str
    """Method, as ``/package.Service/Method``."""
    payload: bytes
    """Encoded request that every connection sends again and again."""
    connections: int
    """Number of connections. A connection serves many requests, unless ``per_request`` is true."""
    duration_s: float
    warm_up_s: float
    cpus: tuple[int, ...] | None
    """Cores to which the program is pinned. None if the program may use every core."""
    per_request: bool = False
    """True for a new connection for each request."""
    in_flight: int = 1
    """Number of concurrent calls on each connection. Only ``grpc-go`` uses this field and the fields below."""
    headers: str = SAME
    """Headers of the calls: a level of the factor ``headers``."""
    deadline_s: float | None = None
    """Deadline of each call, in seconds from its send. None for calls without a deadline."""
    rate_hz: float | None = None
    """Calls per second on all connections together, in an open loop. None for a closed loop."""
    arrivals: Arrivals = "constant"
    """Arrival process of an open loop."""

    @property
    def at(self) -> str:
        """HOST:PORT, with brackets around an IPv6 address."""
        return shown_address(self.address)

    @property
    def timeout_s(self) -> float:
        """Longest time for the program's whole run, in seconds."""
        return self.warm_up_s + self.duration_s + EXTRA_S


@dataclass(frozen=True, slots=True)
class Reading:
    """Results of a program for the requests after its warm-up. A request's time begins at its send; in an open loop,
    when the request was due."""

    requests: int
    """Number of answered requests. If this number is 0, the throughput and both percentiles are also 0."""
    throughput_hz: float
    """Answered requests per second. A reply after the deadline does not count."""
    p50_us: float
    p99_us: float
    errors: int = 0
    times: Times | None = None
    """Times of all answered requests. None if the program does not report these times."""
    cpu_share: float | None = None
    """Processor time that the program used, as a share of a core. None if the program does not report the share."""
    all_requests: int | None = None
    """Number of answered requests, in the warm-up and after the warm-up. None if the program does not report this
    number."""
    never_sent: int = 0
    """Number of requests of an open loop that the program did not send, since too many earlier requests had no reply.
    """
    late_us_p99: float | None = None
    """99th percentile of the lateness of sends in an open loop, in µs. None in a closed loop."""
    reply: bytes | None = None
    """Body of the first reply. All other replies have equal bodies. None if the program does not report bodies."""


@dataclass(frozen=True, slots=True)
class LoadProgram:
    """An installed program, and the function that runs the program and reads its report."""

    program: Path
    reading: Callable[[Path, Ask], Reading]

    def load(self, ask: Ask) -> Reading:
        """Runs the program to its end. Blocks. Raises ProgramFailed if the program does not start, fails, or has no
        report."""
        return self.reading(self.program, ask)


@contextmanager
def load_programs(names: Sequence[str] = ("ghz", "h2load", "go", "c")) -> Iterator[Mapping[str, LoadProgram | Absent]]:
    """Context that yields the named load programs. A missing program is ``Absent``, with the reason. The context builds
    ``go``, ``c`` and ``c-http`` at its begin, and deletes them at its end."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="load-programs-")))
        yield {name: _found(name, scratch) for name in names}


@contextmanager
def present(clients: Iterable[str], option: str) -> Iterator[Mapping[str, LoadProgram]]:
    """Context that yields the load programs among the levels ``clients`` of the factor ``client``. The context builds
    the programs if necessary. Raises UsageError, which names ``option``, for a missing program."""
    with load_programs([name for name in dict.fromkeys(clients) if name in LOAD_PROGRAMS]) as found:
        there: dict[str, LoadProgram] = {}
        for name, program in found.items():
            if isinstance(program, Absent):
                raise UsageError(option, name, f"an installed program ({program})")
            there[name] = program
        yield there


def ghz(program: Path, ask: Ask) -> Reading:
    """Runs ghz to its end. ``ask`` must be for the method Lookup. Raises ProgramFailed."""
    name = stock_pb2.LookupRequest.FromString(ask.payload).name
    command = [str(program), "--insecure", "--proto", str(PROTO), "--import-paths", str(ROOT / "protos")]
    command += ["--call", ask.path.removeprefix("/"), "--data", json.dumps({"name": name})]
    command += ["--concurrency", str(ask.connections), "--connections", str(ask.connections)]
    command += ["--duration", f"{ask.warm_up_s + ask.duration_s:g}s", "--duration-stop", "ignore"]
    command += ["--timeout", f"{TIMEOUT_MS}ms", "--format", "json", ask.at]
    said = finished(command, ask.cpus, ask.timeout_s, ROOT / "protos")
    details = reported(command, said, _Report)["details"] or []
    began_ns = np.array([_moment_ns(detail["timestamp"]) for detail in details], dtype=np.int64)
    took_ns = np.array([detail["latency"] for detail in details], dtype=np.int64)
    is_ok = np.array([detail["status"] == "OK" for detail in details], dtype=np.bool_)
    return _reading(began_ns, took_ns, is_ok, ask)


def h2load(program: Path, ask: Ask) -> Reading:
    """Runs h2load to its end. A reply counts as right if its HTTP status is 200: h2load does not report the gRPC
    status, which is in the trailer. Raises ProgramFailed."""
    with tempfile.TemporaryDirectory() as scratch:
        body, log = Path(scratch) / "body", Path(scratch) / "log"
        body.write_bytes(b"\0" + len(ask.payload).to_bytes(4, "big") + ask.payload)
        command = [str(program), "--clients", str(ask.connections), "--max-concurrent-streams", "1"]
        command += ["--threads", "1", "--duration", f"{1000 * (ask.warm_up_s + ask.duration_s):.0f}ms"]
        command += ["--data", str(body), "--log-file", str(log)]
        command += ["--header", "content-type: application/grpc", "--header", "te: trailers"]
        command += ["--header", f"grpc-timeout: {TIMEOUT_MS}m", f"http://{ask.at}{ask.path}"]
        finished(command, ask.cpus, ask.timeout_s)
        table = np.array(log.read_text().split(), dtype=np.int64).reshape(-1, 3)
    # a line: start in µs, HTTP status, duration in µs
    told = _reading(1000 * table[:, 0], 1000 * table[:, 2], table[:, 1] == 200, ask)
    return replace(told, all_requests=len(table))


def grpc_go(program: Path, ask: Ask) -> Reading:
    """Runs ``grpc-go``, our load program for gRPC, which reports the time of each request. Raises ProgramFailed."""
    command = [str(program), "-address", ask.at, "-call", ask.path, "-data-hex", ask.payload.hex()]
    command += ["-connections", str(ask.connections), "-in-flight", str(ask.in_flight), *HEADERS[ask.headers]]
    command += ["-warm-up", f"{ask.warm_up_s:g}s", "-duration", f"{ask.duration_s:g}s"]
    command += [] if ask.deadline_s is None else ["-deadline", f"{ask.deadline_s:g}s"]
    command += [] if ask.rate_hz is None else ["-rate", f"{ask.rate_hz:g}", "-arrivals", ask.arrivals]
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "times"
        report = reported(command, finished([*command, "-times", str(file)], ask.cpus, ask.timeout_s), _Report)
        told = _of_times(np.fromfile(file, np.int64), report["good_hz"], sum(report["errors"].values()))
    share = report["client_cpu_s"] / report["seconds"]
    told = replace(told, cpu_share=share, all_requests=report["all_calls"])
    if ask.rate_hz is None:
        return told
    return replace(told, never_sent=report["never_sent"], late_us_p99=report["late_us_p99"])


def go(program: Path, ask: Ask) -> Reading:
    """Runs ``go``, our load program for sockets in Go. The program reports only percentiles of the requests' times.
    Raises ProgramFailed."""
    command = [str(program), "-address", ask.at, "-method", ask.path]
    command += ["-payload", ask.payload.hex(), "-connections", str(ask.connections), "-rate", "0"]
    command += ["-timeout", f"{TIMEOUT_MS}ms", "-warm-up", f"{ask.warm_up_s:g}s"]
    command += ["-duration", f"{ask.duration_s:g}s"]
    report = reported(command, finished(command, ask.cpus, ask.timeout_s), _Report)
    return Reading(*(report[name] for name in ("requests", "throughput_hz", "p50_us", "p99_us", "errors")))


def c(program: Path, ask: Ask) -> Reading:
    """Runs ``c``, our load program for sockets in C, which reports the time of each request. Raises ProgramFailed."""
    command = [str(program), ask.address[0], str(ask.address[1]), ask.path, ask.payload.hex()]
    command += [str(TIMEOUT_MS), str(ask.connections), f"{ask.warm_up_s:g}", f"{ask.duration_s:g}", "0"]
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "times"
        report = reported(command, finished([*command, str(file)], ask.cpus, ask.timeout_s), _Report)
        times_ns = np.fromfile(file, dtype=np.uint32).astype(np.int64)
    told = _of_times(times_ns, report["throughput_hz"], report["errors"])
    return replace(told, all_requests=report["all_requests"])


def c_http(program: Path, ask: Ask) -> Reading:
    """Runs ``c-http``, our load program for HTTP/1.1. ``ask.path`` is a method and a route, such as
    ``GET /entities/1``, and ``ask.payload`` is JSON.

    Raises ProgramFailed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "times"
        asked = HttpAsk(
            ask.address,
            ask.path,
            ask.payload.decode(),
            ask.connections,
            not ask.per_request,
            seconds=ask.duration_s,
            warm_up_seconds=ask.warm_up_s,
            cpus=ask.cpus,
        )
        seen = http_load.run(program, asked, file)
        times_ns = np.fromfile(file, dtype=np.int64)
    told = _of_times(times_ns, seen.throughput_hz, seen.errors)
    share, answered = seen.cpu_share, seen.all_requests
    return replace(told, cpu_share=share, all_requests=answered, reply=seen.first_reply)


def _found(name: str, scratch: Path) -> LoadProgram | Absent:
    match name:
        case "ghz":
            found, how = shutil.which(TOOLS / "ghz"), "run make go-tools, which needs Go"
            return LoadProgram(Path(found), ghz) if found else Absent(f"ghz is absent: {how}")
        case "h2load":
            found = shutil.which("h2load")
            return LoadProgram(Path(found), h2load) if found else Absent("h2load is absent: install nghttp2-client")
        case "grpc-go":
            is_here = is_built(_GO_PEER)
            return LoadProgram(BUILT / "go" / "grpc_load", grpc_go) if is_here else Absent(why_absent(_GO_PEER))
        case _:
            return _built(name, scratch)


def _built(name: str, scratch: Path) -> LoadProgram | Absent:
    """Compiles one of our own load programs into the folder ``scratch``. Gives ``Absent`` if the compiler is missing or
    the build fails."""
    language, _, speaks = name.partition("-")
    program = scratch / f"{name}-client"
    if language == "go":
        compiler, command = shutil.which("go"), ["build", "-o", str(program), "./socketload"]
        how = "install Go, see https://go.dev/doc/install"
    else:
        compiler, command = shutil.which("cc"), ["-O2", "-o", str(program), f"{speaks}_load.c" if speaks else "load.c"]
        how = "install a C compiler as cc"
    if compiler is None:
        return Absent(f"the {language.capitalize()} client cannot be built: {how}")
    try:
        finished([compiler, *command], None, BUILD_S, SOURCES / language, _OFFLINE)
    except ProgramFailed as failed:
        return Absent(f"the {language.capitalize()} client cannot be built: {failed}")
    return LoadProgram(program, {"go": go, "c": c, "c-http": c_http}[name])


def _moment_ns(stamp: str) -> int:
    return round(datetime.fromisoformat(stamp).timestamp() * 1e6) * 1000


def _reading(
    began_ns: npt.NDArray[np.int64],
    took_ns: npt.NDArray[np.int64],
    is_ok: npt.NDArray[np.bool_],
    ask: Ask,
) -> Reading:
    """Results for the requests after the warm-up. The arrays have the start time, the duration and the success of every
    request."""
    counted = began_ns - (began_ns.min() if len(began_ns) else 0) >= round(ask.warm_up_s * 1e9)
    answered = counted & is_ok
    ends_ns = (began_ns + took_ns)[answered].max(initial=0)
    window_s = float(ends_ns - began_ns[answered].min(initial=ends_ns)) / 1e9
    throughput_hz = int(answered.sum()) / window_s if window_s else 0.0
    return _of_times(took_ns[answered], throughput_hz, int((counted & ~is_ok).sum()))


def _of_times(took_ns: npt.NDArray[np.int64], throughput_hz: float, errors: int) -> Reading:
    times = Times()
    times.record(took_ns)
    p50_us, p99_us = (float(value) / 1000 for value in (np.percentile(took_ns, [50, 99]) if len(took_ns) else (0, 0)))
    return Reading(len(took_ns), throughput_hz, p50_us, p99_us, errors, times)
