"""The process contract: rules that every server process of this project keeps, with any service and transport.

- The first line on standard output, once the server listens, is ``ready HOST:PORT``. Logs go to standard error.
- After SIGTERM or SIGINT the health's status becomes NOT_SERVING, and the server continues to serve for ``--drain-s``
  seconds. Then the server accepts no more connections, closes idle connections at once, and finishes accepted requests
  within ``--grace-s``. The exit code is 0. If the time was too short, or a file could not be written, the exit code is
  1.
- A second signal, or a failure of the server, ends the process at once with exit code 1.
- After a bad option or file the server prints one line, and exits with 2.

For a server of several processes, the parent process keeps the contract (``family.py``).
"""

import argparse
import errno
import gc
import logging
import os
import resource
import signal
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.errors import UsageError
from stock_service.rpc.health import Health
from stock_service.rpc.metrics import Metrics
from stock_service.rpc.option_types import address, shown_address
from stock_service.rpc.process.beginning import STOPPING, begin
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser, check_writable, integer, refuse, seconds
from stock_service.rpc.process.cores import AUTO, Keeper, cpus
from stock_service.rpc.process.listener_handover import HandOver, offered
from stock_service.rpc.process.secured import add_security_options, check_host, security_of, watch
from stock_service.rpc.service import Service
from stock_service.rpc.timeline import REQUESTS_MAX, Timeline
from stock_service.rpc.transports import ServeOptions, load

_log = logging.getLogger(__name__)

_DEFAULTS = ServeOptions()

PROCESSES_MAX = 64
"""Largest number of processes of one server."""

NO_MEMORY = -1
"""Value of ``--member`` for a child process that shares no memory with the other processes of its server."""

FAILED_EXIT = 1
"""Exit code of a server that failed, or that did not finish its accepted requests."""

EXITS = {
    0: "a signal stopped it, and what had been accepted was finished",
    FAILED_EXIT: "--grace-s was too short, a second signal came, the ready line or a file could not be written, "
    "or it failed",
    USAGE_EXIT: "a bad option or file, or a port that is taken",
}
"""Meaning of each exit code of a server."""

ENDING_S = 0.5
"""Shortest grace, in seconds. A smaller ``--grace-s`` has the same effect as this time. Even on a busy machine, the
threads of a server without requests end within this time.
"""

_SPARE_DESCRIPTORS = 64
"""Number of descriptors that a server needs besides its connections: for libraries, logs and epoll."""


def add_server_options(parser: Parser, transport: str | None) -> None:
    """Adds every option of a server on a transport, for any service. If ``transport`` is None, adds only the options
    that all transports have.
    """
    known = None if transport is None else load(transport)
    port, executor = (None, None) if known is None else (known.DEFAULT_PORT, known.DEFAULT_EXECUTOR)
    add = parser.add_argument
    add("--host", default=_DEFAULTS.host, help="address to listen on")
    add("--port", type=integer(0, 65535), default=port, help="port to listen on, 0 for a free one")
    add_security_options(parser)
    add("--executor", choices=EXECUTORS, default=executor, help="which threads run requests")
    add("--workers", type=integer(1, 1024), default=8, help="threads that run requests")
    add("--queue-limit", type=integer(0, 1_000_000), default=1024, help="requests that may wait for a thread")
    add("--grace-s", type=seconds(0, 3600), default=5.0, help="seconds to finish what was accepted, when it ends")
    help_text = "seconds to serve on once told to stop, while the health call says NOT_SERVING: balancers notice"
    add("--drain-s", type=seconds(0, 3600), default=0.0, help=help_text)
    help_text = "connections at a time, at most"
    add("--connections-max", type=integer(1, 1_000_000), default=_DEFAULTS.connections_max, help=help_text)
    help_text = "bytes of a request, at most"
    add("--frame-bytes-max", type=integer(64, 1 << 30), default=_DEFAULTS.frame_bytes_max, help=help_text)
    help_text = "seconds after which an idle connection is closed"
    add("--idle-timeout-s", type=seconds(0.05, 86400), default=_DEFAULTS.idle_timeout_s, help=help_text)
    help_text = "seconds, give or take a tenth, after which a client is to connect anew; 0: never"
    add("--connection-age-s", type=seconds(0, 86400), default=_DEFAULTS.connection_age_s, help=help_text)
    help_text = "requests under way on a connection, at most"
    add("--pipeline-max", type=integer(1, 65536), default=_DEFAULTS.pipeline_max, help=help_text)
    help_text = "cores to run on: LIST such as 0,2-3; none: any; auto: one, and all where the work lets the GIL go"
    add("--cpus", type=cpus, metavar="auto|none|LIST", default=AUTO, help=help_text)
    add("--stats", action="store_true", help="say at the end what the server computed, and on which cores")
    help_text = "processes that share the port, each with all of the above; the kernel deals connections out"
    add("--processes", type=integer(1, PROCESSES_MAX), default=1, help=help_text)
    add("--member", type=integer(NO_MEMORY, 1 << 20), help=argparse.SUPPRESS)  # from a family's parent to its children
    help_text = f"written when the server stops: when each of the first {REQUESTS_MAX} requests was where"
    add("--timeline", type=Path, metavar="FILE", help=help_text)
    help_text = "where Prometheus may ask what the server does; port 0 takes a free one, which the log names"
    add("--metrics", type=partial(address, port_min=0), metavar="HOST:PORT", help=help_text)
    if known is not None:
        known.add_options(parser)


def timeline_for(options: argparse.Namespace) -> Timeline | None:
    """Makes the timeline for ``--timeline``; None without this option. Raises UsageError for a file that cannot be
    written.
    """
    check_writable("--timeline", options.timeline)
    return None if options.timeline is None else Timeline()


def metrics_for(options: argparse.Namespace) -> Metrics | None:
    """Makes the metrics for ``--metrics``; None without this option. Raises UsageError if the address is bad, or if the
    library is missing.
    """
    if options.metrics is None:
        return None
    from stock_service.rpc.process import scraping  # imported only with --metrics, since asyncio takes 50 ms to load

    return scraping.metrics_at(options.metrics, options.insecure)


def run(
    program: str,
    transport: str,
    service: Service,
    options: argparse.Namespace,
    timeline: Timeline | None = None,
    note: str = "",
    metrics: Metrics | None = None,
    hand_over: HandOver | None = None,
) -> int:
    """Serves until a signal comes. Returns the process's exit code. Blocks. Call this in the main thread of a server's
    process. The caller must then call ``leave``, since threads may still run after a failure. Logs a failure. After bad
    usage, ends the program with ``refuse``.

    ``timeline`` is the result of ``timeline_for`` if the service also records times; None to make a timeline here.
    ``metrics`` is the result of ``metrics_for`` if the service also counts requests; None to make the metrics here.
    ``note`` is a line to print on standard error once the server serves. ``hand_over`` is the result of ``take_over``;
    None for a server without hand-overs.
    """
    try:
        prepare(options)
        timeline = timeline or timeline_for(options)
        metrics = metrics or metrics_for(options)
        security = security_of(transport, options)
        _check_executor(transport, options.executor)
        if metrics is not None:
            service = service.counted(metrics)
            if security.access is not None:
                security.access.refused = metrics.refused
        service = replace(service, health=service.health or Health(service.name))
        serve_options = ServeOptions(
            host=options.host,
            port=options.port,
            requests_max=options.workers + options.queue_limit,
            connections_max=options.connections_max,
            frame_bytes_max=options.frame_bytes_max,
            idle_timeout_s=options.idle_timeout_s,
            connection_age_s=options.connection_age_s,
            connection_grace_s=options.grace_s,
            pipeline_max=options.pipeline_max,
            timeline=timeline,
            metrics=metrics,
            shares_port=options.processes > 1,
            tls=security.tls,
            access=security.access,
            listener=None if hand_over is None else hand_over.listener,
            own=load(transport).own_options(options),
        )
        with watch(security.files, security.reload):
            cores = Keeper(options.cpus)
            try:
                code = _serve(transport, service, options, serve_options, note, hand_over)
            finally:
                where = cores.stop()
        if options.stats:
            print(f"stats: {_computed()}; {where}", file=sys.stderr)
        return code
    except UsageError as error:
        refuse(program, error)
    except Exception:
        _log.exception("the server failed")
        return FAILED_EXIT


def _check_executor(transport: str, executor: str) -> None:
    """Raises UsageError for an executor that the transport cannot use."""
    refused = load(transport).REFUSED_EXECUTORS
    if executor in refused:
        others = ", ".join(name for name in EXECUTORS if name not in refused)
        raise UsageError("--executor", executor, f"{others} on {transport}: {refused[executor]}")


def prepare(options: argparse.Namespace) -> None:
    """Takes the first steps of every server's process: sets up the log, checks the host, and raises the limit of open
    files. Raises UsageError.

    Also calls ``begin``, which the process should have called before its imports.
    """
    begin()
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    check_host(options)
    _raise_descriptor_limit(options.connections_max)


def _serve(
    transport: str,
    service: Service,
    options: argparse.Namespace,
    serve_options: ServeOptions,
    note: str,
    hand_over: HandOver | None,
) -> int:
    """Starts the server, serves until a signal comes, and stops the server. Returns the exit code. Raises
    UsageError."""
    assert service.health is not None
    with ExitStack() as stack:
        starting = stack.enter_context(ExitStack())  # stops the started parts at once if the start fails
        try:
            executor = EXECUTORS[options.executor](options.workers, options.queue_limit)
        except RuntimeError as error:
            allowed = f"as many threads as the system gives ({error})"
            raise UsageError("--workers", options.workers, allowed) from error
        starting.callback(executor.stop, 0)
        try:
            server = load(transport).serve(service, executor, serve_options)
        except (OSError, UnicodeError) as error:  # UnicodeError: a host that is no name at all
            raise Unbound(error, options.host, options.port) from error
        starting.callback(server.stop, 0)
        ready_line = f"ready {shown_address(server.address)}"
        took_over = hand_over is not None and hand_over.old is not None
        if hand_over is not None and took_over:
            if not announced(ready_line):
                return FAILED_EXIT
            hand_over.conclude()  # from here on no other server serves, even if this server fails
        if serve_options.metrics is not None:
            from stock_service.rpc.process import scraping

            scraping.show(serve_options.metrics, service.health, server.address, executor, options.workers)
            try:
                scraped = stack.enter_context(scraping.Scraped(options.metrics, serve_options.metrics.registry))
                note = f"{note}\n".lstrip() + f"metrics at {shown_address(scraped.address)}"
            except UsageError as error:
                if not took_over:
                    raise
                _log.error("%s; nobody sees the metrics", error)
        stopping, handed_over = threading.Event(), threading.Event()
        signals = threading.Thread(target=_watch_signals, args=(stopping, options.member is None), name="signals")
        signals.start()  # the thread ends only with the process
        if hand_over is not None:
            try:
                stack.enter_context(offered(hand_over, partial(_set, handed_over, stopping)))
            except (OSError, UsageError) as error:
                _log.error("no other server can take over from this one: %s", error)
        gc.freeze()  # the garbage collector need not visit the objects of the start again
        if note:
            print(note, file=sys.stderr, flush=True)
        ready = took_over or announced(ready_line)
        if ready:
            stopping.wait()
        starting.pop_all()
        service.health.stop()
        if ready:
            handed_over.wait(options.drain_s)  # ends early after a hand-over: the next server has the port already
        grace_s = max(options.grace_s, ENDING_S)
        deadline_s = time.monotonic() + grace_s
        finished = server.stop(grace_s)
        finished = executor.stop(max(0.0, deadline_s - time.monotonic())) and finished
    if not finished:
        _log.warning("--grace-s %g was too short: what had not ended was given up", options.grace_s)
    written = serve_options.timeline is None or _write(serve_options.timeline, options.timeline)
    return 0 if ready and finished and written else FAILED_EXIT


def _set(*events: threading.Event) -> None:
    for each in events:
        each.set()


def announced(line: str) -> bool:
    """Prints the ready line on standard output, and returns True. If the print fails, logs the error, and returns
    False.
    """
    try:
        print(line, flush=True)
    except OSError as error:
        _log.error("the ready line could not be written on standard output: %s; the server stops", error.strerror)
        return False
    return True


def _computed() -> str:
    """Returns a text on the processor time and memory that this process has used, for ``--stats``."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    largest_mib = used.ru_maxrss / 1024
    return f"{used.ru_utime:.2f} s computed, and {used.ru_stime:.2f} s in the kernel; {largest_mib:.0f} MiB at most"


class Unbound(UsageError):
    """UsageError of a server that cannot listen on an address. The text has the reason and advice."""

    def __init__(self, error: Exception, host: str, port: int) -> None:
        where, allowed = f"--host {host} --port {port}", "an address of this machine"
        reason = str(getattr(error, "strerror", None) or error).partition(" (while attempting")[0]
        super().__init__(where, reason, allowed)
        self._line = f"{where}: {reason}; allowed: {allowed}"
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            taken = f"port {port} of {host} is taken, by a server or a connection"
            self._line = f"{taken}; stop it, or give --port N (0: any free one)"

    def __str__(self) -> str:
        return self._line


def leave(code: int) -> NoReturn:
    """Ends the process with ``code``, even if an abandoned thread still runs."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass  # the reader of the log is gone, or the disk is full: no place is left for a message
    os._exit(code)


def _write(timeline: Timeline, file: Path) -> bool:
    """Writes the timeline to a file, and returns True. If the write fails, logs the error, and returns False."""
    try:
        left_out = timeline.write(file)
    except OSError as error:
        _log.error("--timeline %s could not be written: %s", file, error.strerror)
        return False
    if left_out:
        _log.warning("--timeline %s is full: %d requests were left out", file, left_out)
    return True


def _raise_descriptor_limit(connections_max: int) -> None:
    """Makes the process's limit of open files larger, if the limit is too small for ``connections_max`` connections.
    Raises UsageError if the system does not allow a larger limit.
    """
    needed = connections_max + _SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and needed > hard:
        most = hard - _SPARE_DESCRIPTORS
        if most < 1:
            raise UsageError("open files, by the system's limit (ulimit -Hn)", hard, f"{needed} or more")
        raise UsageError("--connections-max", connections_max, f"up to {most}, by the system's limit on files")
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _watch_signals(stopping: threading.Event, twice: bool) -> None:
    """Main function of the thread that waits for signals. Sets ``stopping`` at the first signal. If ``twice`` is True,
    ends the process at once at the second signal.

    In a child process, ``twice`` is False, since a child may get one signal twice (``family.py``). At a real second
    signal the parent kills the child.

    The server uses a thread for the signals, and not a signal handler. Python runs a handler in the main thread,
    between two instructions. If a signal comes just as the main thread begins to wait, a handler would run only after
    the wait.
    """
    signal.sigwait(STOPPING)
    stopping.set()
    if twice:
        signal.sigwait(STOPPING)
        os._exit(FAILED_EXIT)
