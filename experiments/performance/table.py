"""The goals, a row each: which two servers stand in it, under which load, and what their ratio is to be.

Rows of one section are measured in one run: its servers are alive at once, and their windows take turns. The load is a
program in C: ``load.c`` on sockets, h2load on gRPC. Durable trades and large catalogs have rows of their own, in
``durable`` and ``catalog_size``. Goals that are measured by another command are named with it. Pure.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from experiments.design.arms import Arm, Group
from experiments.design.setting import Setting, setting
from experiments.peers import PYTHON_EPOLL, server_command
from experiments.services import PLAIN

Metric = Literal["throughput", "CPU a request", "median", "p99.9 ÷ median", "least served ÷ mean"]


@dataclass(frozen=True, slots=True)
class Row:
    """A goal. The figure is above ÷ below, each a name in the section's arms; without ``below`` it is one arm's own."""

    what: str
    metric: Metric
    above: str
    below: str | None
    goal: float | None
    """None: no goal is set, and the figure is context."""
    at_least: bool = True
    """Whether more is better; else less is."""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows that are measured together."""

    name: str
    title: str
    arms: Mapping[str, Setting]
    groups: tuple[tuple[str, ...], ...]
    """Arms that stand side by side, by their names."""
    rows: tuple[Row, ...]

    def grouped(self, left_out: frozenset[str]) -> tuple[Group, ...]:
        """The groups without these arms."""
        kept = (tuple(name for name in group if name not in left_out) for group in self.groups)
        return tuple(Group(tuple(Arm(self.arms[name]) for name in group)) for group in kept if len(group) > 1)


CONNECTIONS = 16
"""Where a goal names no other number."""

EPOLL = shlex.join((*server_command(PYTHON_EPOLL), "--port", "0"))
"""Lookups over our protocol by one thread of Python, with nothing of our server."""


def _sockets(connections: int = CONNECTIONS, **levels: str) -> Setting:
    return setting(transport="sockets", connections=connections, client="c").but(**levels)


def _grpc(transport: str = "grpc", connections: int = CONNECTIONS, **levels: str) -> Setting:
    return setting(transport=transport, connections=connections, client="h2load").but(**levels)


SECTIONS = (
    Section(
        "sockets",
        "Sockets, a core each for server and load",
        {
            **{f"sockets {n}": _sockets(n) for n in (1, 16, 64)},
            **{f"C epoll {n}": _sockets(n, language="c") for n in (1, 16, 64)},
            "Python epoll": _sockets(service=EPOLL),
            "echo on sockets": _sockets(service="echo", mix="echo"),
        },
        (
            ("sockets 1", "C epoll 1"),
            ("sockets 16", "C epoll 16", "Python epoll", "echo on sockets"),
            ("sockets 64", "C epoll 64"),
        ),
        (
            Row("sockets ÷ C epoll, 1 connection", "throughput", "sockets 1", "C epoll 1", None),
            Row("sockets ÷ C epoll, 16 connections", "throughput", "sockets 16", "C epoll 16", 0.44),
            Row("sockets ÷ C epoll, 64 connections", "throughput", "sockets 64", "C epoll 64", None),
            Row("sockets ÷ a one-thread epoll server in Python", "throughput", "sockets 16", "Python epoll", 0.72),
            Row("sockets, no client starved, 16 connections", "least served ÷ mean", "sockets 16", None, 0.5),
            Row("sockets, no client starved, 64 connections", "least served ÷ mean", "sockets 64", None, 0.5),
            Row("sockets, the slowest of 1,000", "p99.9 ÷ median", "sockets 16", None, 10, at_least=False),
            Row("stock service ÷ echo on sockets", "CPU a request", "sockets 16", "echo on sockets", 1.10, False),
        ),
    ),
    Section(
        "grpc",
        "gRPC, a core each for server and load",
        {
            "grpc_static": _grpc("grpc_static"),
            "grpcio": _grpc(),
            "plain grpcio": _grpc(service=PLAIN),
            "grpc-go": _grpc(language="go"),
            "tonic": _grpc(language="rust"),
            "sockets": _sockets(),
            "grpc_static 1": _grpc("grpc_static", 1),
            "grpcio 1": _grpc(connections=1),
            "echo on grpc_static": _grpc("grpc_static", service="echo", mix="echo"),
            "echo on grpcio": _grpc(service="echo", mix="echo"),
        },
        (
            ("grpc_static", "grpcio", "plain grpcio", "grpc-go", "tonic", "sockets"),
            ("grpc_static 1", "grpcio 1"),
            ("grpc_static", "echo on grpc_static"),
            ("grpcio", "echo on grpcio"),
        ),
        (
            Row("grpc_static ÷ grpcio", "throughput", "grpc_static", "grpcio", 9),
            Row("grpcio ÷ grpc_static", "CPU a request", "grpcio", "grpc_static", 9),
            Row("grpc_static ÷ grpc-go", "throughput", "grpc_static", "grpc-go", 1.2),
            Row("grpc-go ÷ grpc_static", "CPU a request", "grpc-go", "grpc_static", 1.2),
            Row("grpc_static ÷ tonic", "throughput", "grpc_static", "tonic", 1),
            Row("tonic ÷ grpc_static", "CPU a request", "tonic", "grpc_static", 1),
            Row("grpc_static ÷ grpcio, 1 connection", "median", "grpc_static 1", "grpcio 1", 0.6, False),
            Row("sockets ÷ grpcio", "throughput", "sockets", "grpcio", 16),
            Row("grpcio ÷ sockets", "CPU a request", "grpcio", "sockets", 16),
            Row("grpcio, ours ÷ plain", "throughput", "grpcio", "plain grpcio", 0.9),
            Row(
                "stock service ÷ echo on grpc_static", "CPU a request", "grpc_static", "echo on grpc_static", 1.1, False
            ),
            Row("stock service ÷ echo on grpcio", "CPU a request", "grpcio", "echo on grpcio", 1.1, False),
        ),
    ),
    Section(
        "started-sockets",
        "Sockets as they are started: nothing is pinned by the user, the load is on all cores",
        {
            "sockets": _sockets(),
            "sockets, default": _sockets(placement="auto"),
            "C epoll, unpinned": _sockets(language="c", placement="free"),
        },
        (("sockets, default", "sockets", "C epoll, unpinned"),),
        (
            Row("sockets, default ÷ pinned", "throughput", "sockets, default", "sockets", 0.9),
            Row("sockets ÷ C epoll, unpinned", "throughput", "sockets, default", "C epoll, unpinned", 0.44),
        ),
    ),
    Section(
        "started-grpc",
        "gRPC as it is started, likewise",
        {
            "grpc_static": _grpc("grpc_static"),
            "grpc_static, default": _grpc("grpc_static", placement="auto"),
            "grpcio": _grpc(),
            "grpcio, default": _grpc(placement="auto"),
            "plain grpcio, unpinned": _grpc(service=PLAIN, placement="free"),
            "grpc-go, unpinned": _grpc(language="go", placement="free"),
        },
        (
            (
                "grpc_static, default",
                "grpc_static",
                "grpcio, default",
                "grpcio",
                "plain grpcio, unpinned",
                "grpc-go, unpinned",
            ),
        ),
        (
            Row("grpc_static, default ÷ pinned", "throughput", "grpc_static, default", "grpc_static", 0.9),
            Row("grpcio, default ÷ pinned", "throughput", "grpcio, default", "grpcio", 0.9),
            Row("grpcio, default ÷ plain", "throughput", "grpcio, default", "plain grpcio, unpinned", 2.2),
            Row("grpc_static ÷ grpcio, unpinned", "throughput", "grpc_static, default", "grpcio, default", 9),
            Row("grpc_static ÷ grpc-go, unpinned", "throughput", "grpc_static, default", "grpc-go, unpinned", 1.2),
        ),
    ),
)

READY_S: Mapping[str, float] = {"sockets": 0.25, "grpc": 0.5, "grpc_static": 0.5}
"""From starting a server to its ready line, at most, by transport."""

IDLE = 10_000
IDLE_MIB: Mapping[str, float] = {"sockets": 100, "grpc_static": 100}
"""Memory of a server that holds so many idle connections, at most."""

ELSEWHERE: Mapping[str, str] = {
    "load client ÷ C, h2load, ghz": "`python -m experiments selfcheck clients`",
    "TLS ≤ 1.30, a token ≤ 1.05, metrics ≤ 1.03: CPU a request on sockets": "`python -m experiments run options`",
    "100,000 remembered ids ≤ 25 MiB": '`make test ARGS="-k what_is_remembered_takes_little_memory"`',
}
"""Goals that are not measured here, and where they are."""
