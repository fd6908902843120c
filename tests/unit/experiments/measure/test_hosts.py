"""The share of a host in a window."""

from dataclasses import replace

from clients.load.hosts.merging import HostResult
from experiments.measure import hosts
from tests.unit.clients.load.reports import closed_records, closed_run, open_run


def test_a_host_is_as_busy_as_its_busiest_core() -> None:
    """The busiest core has at least the time of the busiest client, and at least the mean over the host's cores."""
    run = closed_run(closed_records())
    for each_s, cores, core_s in (((1.9, 0.1), 16, 1.9), ((1.0, 1.0, 1.0), 1, 3.0), ((0.5, 0.7), 2, 0.7)):
        share = HostResult("a", 0.01, replace(run, client_cpu_each_s=each_s, cores=cores))
        assert hosts._seen(share).core_s == core_s


def test_a_hosts_mean_counts_for_all_requests_that_it_is_over() -> None:
    """The number of requests of a host's mean includes requests that ended in errors."""
    run = open_run(count=2000, failed=500)
    assert run.requests["all"].count == 1500
    assert hosts._seen(HostResult("a", 0.01, run)).requests == 2000
