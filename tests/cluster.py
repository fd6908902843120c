"""A Dask cluster of processes on this machine: a scheduler, and a worker for each host's name.

``within`` gives the words to put before a host's command, such as those that enter a network namespace.
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
from distributed import Client

from stock_service.rpc.process.lifeline import tied
from stock_service.rpc.transports import Address

ROOT = Path(__file__).resolve().parent.parent

WAIT_S = 60.0
"""Longest time for the cluster to be there; three seconds are usual."""

Within = Callable[[str], Sequence[str]]

SCHEDULER = "scheduler"
"""Name of the scheduler, for ``within``."""


class Cluster:
    """The processes of a cluster: the scheduler and the workers."""

    def __init__(self, folder: Path, hosts: Sequence[str], listen: str, within: Within, worker_port: int) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.address: Address = (listen, free.getsockname()[1])
        self._folder, self._within, self._worker_port = folder, within, worker_port
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        host, port = self.address
        self._start(SCHEDULER, "scheduler", "--host", host, "--port", str(port), "--no-dashboard", "--no-show")
        for name in hosts:
            self.start(name)

    def start(self, name: str) -> None:
        """Starts a host's worker."""
        beside = ("--name", name, "--nthreads", "1", "--no-dashboard", "--local-directory", str(self._folder / name))
        port = ("--worker-port", str(self._worker_port))
        self._start(name, "worker", "{}:{}".format(*self.address), "--no-nanny", *port, *beside)

    def kill(self, name: str) -> None:
        """Kills a host's worker, as if the machine had lost its power."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def senders(self) -> int:
        """Number of client processes on all hosts: the processes that the fork servers have forked."""
        workers = (psutil.Process(process.pid) for name, process in self.processes.items() if name != SCHEDULER)
        return sum(len(beside.children()) for worker in workers for beside in worker.children())

    def end(self) -> None:
        """Kills all processes."""
        for name in list(self.processes):
            self.kill(name)

    def _start(self, name: str, *words: str) -> None:
        command = [*self._within(name), sys.executable, "-m", "dask", *words]
        with (self._folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                tied(command), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )


def _here(_name: str) -> Sequence[str]:
    return ()


@contextmanager
def cluster(
    hosts: Sequence[str], listen: str = "127.0.0.1", within: Within = _here, worker_port: int = 0
) -> Iterator[Cluster]:
    """A running cluster. Its workers join later; see ``wait_for``. ``worker_port`` is the port of every host's worker;
    0: any."""
    with tempfile.TemporaryDirectory(prefix="dask-") as folder:
        made = Cluster(Path(folder), hosts, listen, within, worker_port)
        try:
            yield made
        finally:
            made.end()


def wait_for(address: Address, hosts: int) -> None:
    """Waits until this number of hosts have come."""
    with closing(Client("{}:{}".format(*address), timeout=WAIT_S, set_as_default=False)) as client:
        client.wait_for_workers(hosts, timeout=WAIT_S)


os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every process compiles Dask anew, in seconds
