"""Load of both sides: a check that the chosen client can send the load, and a first measurement of response times.

A side is A or B. Both sides always get equal loads. ``lean`` and ``library`` are kinds of our own client. All other
clients are load programs. Load programs are for servers that are so fast that our client would be the limit. A load
program repeats one request in a closed loop, on persistent connections. If a load program cannot send a load, the load
is refused with a message that names the option.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TextIO

from clients.load.plan.load_plan import REQUESTS
from clients.load.record.result import ALL
from clients.load.run import fleet
from experiments.design.arms import Arm
from experiments.design.factors import FACTORS, GRPC_GO, LOAD_PROGRAMS
from experiments.design.levels import parsed_mix, shown
from experiments.design.setting import Setting
from experiments.measure.bench import Bench, exits, running_at, server_command
from experiments.measure.programs import Program
from experiments.measure.slices import load_plan
from experiments.peers import PEER_CLIENT
from experiments.services import OURS, SERVICES, STOCK
from experiments.services.workloads import names_of, request_types
from experiments.show.numbers import percent
from stock_service.rpc.errors import Unavailable, UsageError
from stock_service.trading.model import Status

_PLAIN = ("clients", "connection", "choice", "updater", "rate_hz", "deadline_ms")
"""Factors of the load that must be at their defaults if a load program sends the load. ``check`` has two exceptions."""

ROUTED = tuple(each.name for each in request_types(0) if not each.path.startswith("/"))
"""Names of the requests that are sent to routes of HTTP/1.1, in JSON."""

NAMED = "Requests name the stocks of --catalog: give the catalog that the server has."
"""Advice for a server that does not know a stock."""

LOOK_S, LOOK_S_MAX = 0.2, 3.0
"""Durations of the first measurement, in seconds. If no valid reply comes within ``LOOK_S``, the measurement is
repeated with ``LOOK_S_MAX``."""


def option(factor: str) -> str:
    """Name of the option for a factor of the load, such as ``--rate-hz``. For the factor ``client`` the option is
    ``--load``."""
    return "--load" if factor == "client" else f"--{factor.replace('_', '-')}"


def check(a: Setting, b: Setting) -> None:
    """Raises UsageError for sides with different loads, and for loads that the chosen client cannot send."""
    for name, level in a.of("load"):
        if b[name] != level:
            given = f"{name}={a.text(name)} for A, {name}={b.text(name)} for B"
            raise UsageError("a load", given, f"the same load on both sides, as {option(name)}")
    for of in (a, b):
        _check_mix(of)
    program = a.text("client")
    for name in () if program in (GRPC_GO, PEER_CLIENT) else ("headers", "in_flight"):
        _check_default(a, name, f"; any with --load {GRPC_GO}")
    if program not in LOAD_PROGRAMS:
        return
    for side, of in (("A", a), ("B", b)):
        if of["transport"] not in LOAD_PROGRAMS[program]:
            others = [name for name, spoken in LOAD_PROGRAMS.items() if of["transport"] in spoken]
            allowed = f"{', '.join(('lean', 'library', *others))} for {side}, which is {of.text('transport')}"
            raise UsageError(
                "--load", program, f"{allowed} ({program} speaks {', '.join(LOAD_PROGRAMS[program])} alone)"
            )
    for name in _PLAIN:
        if (program, name) in (("c-http", "connection"), (GRPC_GO, "deadline_ms")):  # these programs take the level
            continue
        _check_default(a, name, ", and --connections for more" if name == "clients" else "")
    if program == "c-http" and a.text("mix") not in ROUTED:
        raise UsageError("--mix", a.text("mix"), f"{' or '.join(ROUTED)} with --load c-http, which sends routes")
    if len(parsed_mix(a.text("mix"))) > 1:
        raise UsageError("--mix", a.text("mix"), f"one request type with --load {program}")


def _check_default(of: Setting, name: str, more: str) -> None:
    """Raises UsageError for a factor that is not at its default. ``more``: words on other levels, for the error."""
    if of[name] != FACTORS[name].default:
        usual = shown(FACTORS[name].default_among({}))
        raise UsageError(option(name), of.text(name), f"{usual} with --load {of.text('client')}{more}")


def _check_mix(of: Setting) -> None:
    """Raises UsageError for requests that a service of ours does not answer. Other services are not checked."""
    service = of.text("service")
    if service not in OURS:
        return
    answered = REQUESTS if service == STOCK else names_of(service)
    every = {*REQUESTS, *(name for each in SERVICES for name in names_of(each))}
    for name in parsed_mix(of.text("mix")):
        if name in every and name not in answered:
            raise UsageError("--mix", name, f"{', '.join(answered)} with service={service}")


def mean_response_s(sides: Sequence[Setting], on: Bench, said: TextIO) -> float:
    """Mean response time of the slower side in a closed loop, in seconds; 0 if no server is measured.

    In an open loop no server is measured. In a closed loop, a server is measured if the server is not ours, or if a
    load program sends the load. Our own client sends requests to the measured servers, and checks every reply. If a
    server answers that it does not know a stock, a line on ``said`` names the server. Blocks for some 0.5 s for each
    measured server. Raises ProgramFailed or a Fault if a server does not answer.
    """
    asked = (
        each
        for each in sides
        if each["rate_hz"] is None and (each["service"] not in OURS or each["client"] in LOAD_PROGRAMS)
    )
    return max((_mean_response_s(each, on, said) for each in asked), default=0.0)


def _mean_response_s(of: Setting, on: Bench, said: TextIO) -> float:
    own = of.but(client="lean") if of["client"] in LOAD_PROGRAMS else of
    server = Arm(own).server
    with ExitStack() as running:
        at = running_at(server)
        if at is None:
            program = Program(server_command(server, on.catalog), on.server_cores, exits(server))
            at = running.enter_context(program).ready()
            running.enter_context(program.drained())
        plan = load_plan(Arm(own), at, on, seed=1)
        for duration_s in (LOOK_S, LOOK_S_MAX):
            result = fleet.run(replace(plan, duration_s=duration_s))
            if result.interrupted:
                raise KeyboardInterrupt
            mean_us = result.requests[ALL].mean_us
            if result.requests[ALL].count and mean_us is not None:
                if unknown := result.requests[ALL].outcomes.get(Status.UNKNOWN_STOCK.name):
                    share = percent(unknown / sum(result.requests[ALL].outcomes.values()))
                    print(f"{of.text('service')} knows no such stock in {share} of its replies. {NAMED}", file=said)
                return mean_us / 1e6
    errors = ", ".join(f"{count} {kind}" for kind, count in result.errors.items()) or "none"
    what = f"no valid reply within {LOOK_S_MAX:g} s; errors: {errors}"
    asked = of.text("mix") if "/" in of.text("mix") else f"{of.text('mix')} of a stock; --call asks for another method"
    spoken = of.text("transport") if plan.credentials.authority else f"{of.text('transport')} without TLS (--tls-ca)"
    raise Unavailable(f"{of}: {what}; does it speak {spoken}, and know this call: {asked}?")
