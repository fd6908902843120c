"""A load run from many hosts. Each host is a worker of a Dask cluster and gets a share of the plan.

A share has some of the clients, the corresponding part of the rate, and a unique seed. A share is one Dask task. The
task runs on one worker and is never repeated (``share.py``).

Every time is a difference of two readings of one clock. No clock is compared with another clock. This machine's clock
gives two moments: just before the start signal to all hosts, and at the arrival of each host's answer to the signal. A
host's clock gives the time from the signal to the host's first connect. From these three values the module computes the
largest possible time between the first host's start and a later host's start.

A run is refused if a host dies, sends nothing for ``SILENT_S``, lags or starts a share again. The error names the host.
A refused run has no result.
"""

import hashlib
import secrets
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from distributed import Client, Future, Queue

from clients.load.hosts import share
from clients.load.hosts.merging import HostResult, together
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import LoadResult
from clients.load.run import fleet
from clients.load.run.fleet import Phase, Progress, Watch
from stock_service.rpc.errors import StockServiceError, UsageError

CONNECT_S = 10.0
"""Longest time to reach the scheduler, in seconds."""

SILENT_S = 10.0
"""Longest time in seconds without a message from a host that has begun, or without an answer from the scheduler."""

SKEW_SHARE, SKEW_LEAST_S = 0.05, 0.1
"""Two limits of a host's lag behind the first host. ``SKEW_SHARE`` is a share of the window, ``SKEW_LEAST_S`` is in
seconds. A run is refused if a host's lag may be larger than both limits."""

_NOT_READY = " before it was ready: start its worker in the project's folder, with the project's packages"

_PAUSE_S = 0.1
"""Pause between two checks of the hosts, in seconds."""


class Refused(StockServiceError):
    """Error of a run that has no result because a host did not do its share. The text names the host."""


@dataclass(slots=True)
class _Host:
    """A worker of the cluster, with the state of its share. Moments are on this machine's clock."""

    name: str
    address: str
    number: int
    plan: LoadPlan
    ready: bool = False
    heard_s: float | None = None
    """Moment at which the host's answer to the start signal arrived."""
    began_after_s: float | None = None
    """Time from the start signal to the host's first connect, by the host's clock."""
    lived_s: float = 0.0
    """Moment of the host's last sign of life."""
    requests: int = 0
    result: LoadResult | None = None


def run(
    plan: LoadPlan, scheduler: str, watch: Watch, expected: Sequence[str] = ()
) -> tuple[LoadResult, tuple[HostResult, ...]]:
    """Makes the run, and returns the result of the whole run and of each host. Blocks as long as the hosts prepare, and
    then as long as ``fleet.run``.

    ``expected`` has the names of the hosts that must send. Empty: all hosts of the cluster send. Raises UsageError if
    the scheduler does not answer, or if the load has fewer clients than hosts. Raises Refused for a run without a
    result. An exception of ``watch`` ends the run on all hosts.
    """
    with _connected(scheduler) as client, _Run(client, plan, watch, expected) as running:
        hosts = running.results()
    for host in hosts:
        check(host, plan)
    return together(plan.rate_hz, [host.result for host in hosts]), tuple(hosts)


def names(scheduler: str) -> Sequence[str]:
    """Names of all hosts. Raises UsageError if the scheduler does not answer, and Refused if the cluster has no
    hosts."""
    with _connected(scheduler) as client:
        return sorted(str(worker["name"]) for worker in _some_workers(client).values())


def check(host: HostResult, plan: LoadPlan) -> None:
    """Raises Refused if a host stopped early, lagged, or may have begun too late."""
    if host.result.interrupted:
        raise Refused(f"host {host.name} stopped before the end")
    if host.result.off_schedule is not None:
        raise Refused(f"host {host.name} lagged: its sends did not follow the schedule ({host.result.off_schedule})")
    if host.began_within_s > max(SKEW_LEAST_S, SKEW_SHARE * plan.duration_s):
        raise Refused(f"host {host.name} lagged: it may have begun {host.began_within_s:.3f} s after the first")


def began_within_s(go_s: float, began: Sequence[tuple[float, float]]) -> list[float]:
    """Largest possible lag of each host behind the first host, in seconds.

    ``began`` has two values for each host: the moment of the host's answer to the signal, and the time from the signal
    to the host's start. The signal was sent at ``go_s``.
    """
    first_s = min(go_s + after_s for _, after_s in began)
    return [heard_s + after_s - first_s for heard_s, after_s in began]


@contextmanager
def _connected(scheduler: str) -> Iterator[Client]:
    """Context with a connection to the scheduler. Raises UsageError if the scheduler does not answer, and Refused if
    the connection is lost."""
    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError("--cluster", scheduler, f"the address of a Dask scheduler ({error})") from error
    try:
        yield client
    except (OSError, RuntimeError) as error:  # RuntimeError: Dask has closed the connection for good
        if client.status == "running" and not isinstance(error, OSError):
            raise
        raise Refused(f"the Dask scheduler at {scheduler} is gone: {error}") from error
    finally:
        client.close()


def hosts_of(client: Client, plan: LoadPlan, expected: Sequence[str] = ()) -> list[_Host]:
    """All workers in the order of their names, each with a share of the plan. Raises UsageError if the plan has fewer
    clients than the cluster has workers. Raises Refused if a worker has a nanny (``share.py``), or if the workers are
    not the expected hosts."""
    workers = _some_workers(client)
    if expected:
        here = {str(worker["name"]) for worker in workers.values()}
        changes = [f"host {name} is gone" for name in expected if name not in here]
        changes += [f"host {name} came later" for name in sorted(here.difference(expected))]
        if changes:
            raise Refused(f"{', '.join(changes)}: the run began with {', '.join(expected)}")
    if len(workers) > plan.clients:
        raise UsageError("--clients", plan.clients, f"{len(workers)} or more: one for each host of the cluster")
    hosts, named = [], sorted((str(worker["name"]), address) for address, worker in workers.items())
    for number, (name, address) in enumerate(named):
        if workers[address].get("nanny"):
            raise Refused(f"host {name} has a nanny, which would start it again: start its worker with --no-nanny")
        clients = plan.clients * (number + 1) // len(named) - plan.clients * number // len(named)
        rate_hz = None if plan.rate_hz is None else plan.rate_hz * clients / plan.clients
        digest = hashlib.sha256(f"{plan.seed}/{number}".encode()).digest()
        own = replace(plan, clients=clients, rate_hz=rate_hz, seed=int.from_bytes(digest[:7]))
        hosts.append(_Host(name, address, number, own))
    return hosts


def _some_workers(client: Client) -> Mapping[str, Mapping[str, Any]]:
    """Workers of the scheduler, by address. Raises Refused for a cluster without workers."""
    workers = _workers(client)
    if not workers:
        raise Refused("the Dask cluster has no workers: start one on each host")
    return workers


def _workers(client: Client) -> Mapping[str, Mapping[str, Any]]:
    """Workers that the scheduler has at this moment, by address. Raises OSError.

    Dask's method ``Client.scheduler_info`` is not used: it gives an old state if the scheduler is gone, and sometimes
    leaves out workers.
    """
    asked: Mapping[str, Mapping[str, Mapping[str, Any]]] = _ask(client, "identity", n_workers=-1)
    return asked["workers"]


def _ask(client: Client, question: str, **words: object) -> Any:
    """Asks the scheduler, and gives the answer. Raises OSError if no answer comes within ``SILENT_S``. Dask's own
    ``Event`` would wait for ever."""
    if client.scheduler is None:
        raise ConnectionError("closed")
    return client.sync(getattr(client.scheduler, question), **words, callback_timeout=SILENT_S)


class _Run:
    """A load run on the hosts of a cluster. After the ``with`` block no host runs the load any more."""

    def __init__(self, client: Client, plan: LoadPlan, watch: Watch, expected: Sequence[str]) -> None:
        self._client, self._plan, self._watch = client, plan, watch
        self._name = f"load-{secrets.token_hex(6)}"
        self.hosts = hosts_of(client, plan, expected)
        self._said = Queue(self._name, client)
        self._tokens = [Queue(share.token(self._name, host.number), client) for host in self.hosts]
        self._go_s = 0.0
        self._futures: dict[int, Future[Any]] = {}

    def __enter__(self) -> "_Run":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, RuntimeError):  # the scheduler may be gone
            self._client.cancel(list(self._futures.values()))
            for queue in (self._said, *self._tokens):
                queue.close()
            _ask(self._client, "event_clear", name=self._name)

    def results(self) -> list[HostResult]:
        """Waits for the results of all hosts. Raises Refused."""
        for host, token in zip(self.hosts, self._tokens, strict=True):
            token.put(1, callback_timeout=SILENT_S)
            self._futures[host.number] = self.submit(host, host.address)
        self._until(lambda host: host.ready, "starting", share.GO_S)
        self._go_s = time.monotonic()
        _ask(self._client, "event_set", name=self._name)
        self._until(lambda host: host.heard_s is not None, "starting", SILENT_S, pause_s=0.0)
        plan = self._plan
        left_s = share.LEAD_S + plan.warm_up_s + plan.duration_s + 2 * plan.timeout_s + fleet.FOLD_S + SILENT_S
        self._until(lambda host: host.result is not None, "finishing", left_s)
        began = [(host.heard_s or 0.0, host.began_after_s or 0.0) for host in self.hosts]
        within_s = began_within_s(self._go_s, began)
        results = [(host.name, host.result) for host in self.hosts if host.result is not None]
        return [HostResult(name, each_s, result) for (name, result), each_s in zip(results, within_s, strict=True)]

    def submit(self, host: _Host, worker: str) -> Future[Any]:
        """Starts the task of a host. The task runs on this worker alone, and at most once."""
        what = share.Share(host.plan, host.number, self._name, share.SOURCES)
        key, pinned = f"{self._name}-{host.number}-{worker}", [worker]
        return self._client.submit(
            share.run, what, key=key, workers=pinned, allow_other_workers=False, retries=0, pure=False
        )

    def _until(self, done: Callable[[_Host], bool], phase: Phase, limit_s: float, pause_s: float = _PAUSE_S) -> None:
        """Waits until ``done`` is true for every host. Raises Refused after ``limit_s``."""
        until_s = time.monotonic() + limit_s
        while True:
            self._take()
            self._hear()  # after _take, so that a second start of a share is known before the result counts
            missing = [host.name for host in self.hosts if not done(host)]
            if not missing:
                return
            if time.monotonic() > until_s:
                raise Refused(f"host {', '.join(missing)} took over {limit_s:g} s ({phase})")
            self._tell(phase)
            time.sleep(pause_s)

    def _hear(self) -> None:
        """Reads the messages that have come from the hosts. Raises Refused if a share was started again."""
        for number, word, value in self._said.get(batch=True, callback_timeout=SILENT_S):
            host = self.hosts[number]
            host.lived_s = time.monotonic()
            match word:
                case share.READY:
                    host.ready = True
                case share.HEARD:
                    host.heard_s = host.lived_s
                case share.BEGUN:
                    host.began_after_s = value / 1e9
                case share.LIVES:
                    host.requests = value
                case _:
                    raise Refused(f"the share of host {host.name} was started a second time")

    def _take(self) -> None:
        """Takes the results that have come from the hosts. Raises Refused if a host failed, died or sent nothing for
        ``SILENT_S``."""
        here = _workers(self._client)
        for host in self.hosts:
            future = self._futures[host.number]
            if host.result is not None:
                continue
            if host.address not in here:
                raise Refused(f"host {host.name} ({host.address}) died" + _NOT_READY * (not host.ready))
            if future.done():
                try:
                    host.result = future.result(timeout=SILENT_S)
                except (Exception, CancelledError) as error:  # an error of a host, or a lost host
                    raise Refused(f"host {host.name}: {error}") from error
            elif host.heard_s is not None and time.monotonic() - host.lived_s > SILENT_S:
                raise Refused(f"host {host.name} ({host.address}) said nothing for {SILENT_S:g} s")

    def _tell(self, phase: Phase) -> None:
        """Reports the progress to the watch. This machine's clock decides the phase."""
        passed_s = time.monotonic() - self._go_s - share.LEAD_S if self._go_s else 0.0
        left_s = self._plan.warm_up_s + self._plan.duration_s - passed_s
        if phase == "finishing" and left_s > 0:
            phase = "starting" if passed_s < 0 else "warm-up" if passed_s < self._plan.warm_up_s else "measuring"
        requests = sum(host.requests for host in self.hosts)
        self._watch(Progress(phase, requests, max(0.0, passed_s), max(0.0, left_s)))
