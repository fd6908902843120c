"""Servers alone: values over repetitions, differences within each, and no interval under 0."""

import pytest

from experiments.judge.standalone import judged
from experiments.judge.stats import mean_interval, positive_interval
from tests.unit.experiments.apart_seen import ALONE, repetition
from tests.unit.experiments.known import known

SEEN = [
    repetition(1, 120, (15.0, 17.0, 30.0), 0.0),
    repetition(2, 130, (25.0, 27.1, 41.0), 0.0),
    repetition(3, 140, (20.0, 21.9, 34.0), 0.003),
]


def test_each_figure_has_an_interval_over_the_repetitions() -> None:
    """Student's t on the repetitions' values, for each server and each number of connections."""
    sockets, grpc = judged(ALONE, SEEN).servers
    assert sockets.ready_ms == mean_interval([120, 130, 140], 0.95)
    assert grpc.ready_ms == mean_interval([240, 260, 280], 0.95)
    assert [each.connections for each in sockets.holding] == [0, 1_000, 10_000]
    most = known(sockets.with_connections(10_000))
    assert most.resident_mib == mean_interval([30, 41, 34], 0.95)
    assert grpc.with_connections(1_000) is None


def test_what_connections_add_is_taken_within_each_repetition() -> None:
    """The memory of connections is a difference within each repetition: 2 MiB within 0.3, though starts differ by
    10."""
    held = known(judged(ALONE, SEEN).servers[0].with_connections(1_000))
    assert held.added_mib.value == pytest.approx(2.0)
    assert 1.7 < held.added_mib.low < held.added_mib.high < 2.3


def test_no_interval_of_what_cannot_be_negative_reaches_under_0() -> None:
    """The interval of an idle server's processor time begins at 0, though most values are 0."""
    idle = judged(ALONE, SEEN).servers[0].holding[0].idle_share
    assert idle.low == 0 < idle.value < idle.high
    assert positive_interval([5.0, 5.1], 0.95).low > 0


def test_without_repetitions_there_are_no_servers() -> None:
    """Without repetitions there are no servers."""
    assert judged(ALONE, []).servers == ()
