"""Sends a window's load from the hosts of a Dask cluster. Importing this module imports Dask."""

from dataclasses import replace

from clients.load.hosts import cluster
from clients.load.hosts.merging import HostResult
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import ALL, LoadResult
from experiments.measure.bench import Hosts
from experiments.results.observed import HostSeen


def sent(plan: LoadPlan, hosts: Hosts) -> tuple[LoadResult, tuple[HostSeen, ...]]:
    """Sends the load of one window from all hosts, and gives the result of all hosts together and of each host.

    Blocks until the hosts are prepared, and then until the window ends. Each host uses the cores of its Dask worker.
    Raises UsageError if no scheduler answers, and Refused if a host does not send its share of the load.
    """
    result, each = cluster.run(replace(plan, cpus=None), hosts.scheduler, lambda _: None, hosts.names)
    return result, tuple(map(_seen, each))


def _seen(host: HostResult) -> HostSeen:
    result, every = host.result, host.result.requests[ALL]
    core_s = max((*result.client_cpu_each_s, result.client_cpu_s / (result.cores or 1)))
    return HostSeen(host.name, host.began_within_s, every.response.get_total_count(), every.mean_us, core_s)
