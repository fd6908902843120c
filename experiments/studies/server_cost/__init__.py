"""What a request costs the server: CPU-seconds per request, of one transport against the other and against a bare echo.

CPU time hardly feels the neighbours' noise, so that it can be compared where times cannot. The server has one core and
one lean load process with 16 kept-alive connections the other. The arms:

- sockets against gRPC: Lookup, each transport with its default executor, 8 workers, a mutex; and gRPC on the static
  pool too, so that what the executor does is seen apart;
- the stock service against a bare echo, on the same transport and executor: what stands above the transport;
- the timeline: every request's stages stamped, against the same without;
- idle: a server that nobody calls, from the scheduler's accounts, and the memory of 1,000 idle connections.
"""

from dataclasses import replace

from experiments.design import ECHO, LOOKUP, Factor, Setting, cross
from experiments.studies.server_cost.goals import conclude
from experiments.study import Part, Profile, Scale, Study

CONNECTIONS = 16
WORKERS = 8
IDLE_CONNECTIONS = 1000

DEFAULT_EXECUTORS = (("grpc", "thread-pool"), ("sockets", "static-pool"))


def _arms(setting: Setting) -> tuple[Setting, ...]:
    """That setting on each transport, with the transport's default executor."""
    return tuple(
        replace(setting, transport=transport, executor=executor, workers=WORKERS)
        for transport, executor in DEFAULT_EXECUTORS
    )


def lookup(scale: Scale) -> tuple[Setting, ...]:
    """Lookup on each transport, and on gRPC with the static pool."""
    base = replace(scale.setting("lookup"), connections=CONNECTIONS, mix=LOOKUP, client="lean")
    return (*_arms(base), replace(base, transport="grpc", executor="static-pool", workers=WORKERS))


def echo(scale: Scale) -> tuple[Setting, ...]:
    """The echo, on the executors of ``lookup``."""
    base = replace(scale.setting("echo"), service="echo", connections=CONNECTIONS, mix=ECHO, client="lean")
    return _arms(base)


def stamped(scale: Scale) -> tuple[Setting, ...]:
    """Lookup as in ``lookup``, every request's stages stamped."""
    base = replace(scale.setting("stamped"), connections=CONNECTIONS, mix=LOOKUP, client="lean", timeline=True)
    return _arms(base)


def idle(scale: Scale) -> tuple[Setting, ...]:
    """Each server without connections, and the socket server with a thousand."""
    base = replace(scale.setting("idle"), duration_s=scale.profile.idle_s, clients=0, connections=0)
    held = replace(base, executor="static-pool", workers=WORKERS)
    return (*_arms(base), *cross(held, Factor("connections", (IDLE_CONNECTIONS,))))


SERVER_COST = Study(
    name="server_cost",
    question="What does a request cost the server in CPU-seconds: sockets against gRPC, and against a bare echo?",
    parts={
        "lookup": Part("Lookup at 16 kept-alive connections, on both transports", lookup, varies_clients=False),
        "echo": Part("A bare protobuf echo, likewise", echo, varies_clients=False),
        "stamped": Part(
            "Lookup with every request's stages stamped: what the timeline itself costs", stamped, varies_clients=False
        ),
        "idle": Part("A server that nobody calls, and 1,000 idle connections", idle, once=True, varies_clients=False),
    },
    main=("lookup", "echo", "stamped", "idle"),
    profiles={
        "smoke": Profile(blocks=6, warm_up_s=0.3, duration_s=0.7, idle_s=5.0),
        "quick": Profile(blocks=9, warm_up_s=0.5, duration_s=3.0, idle_s=60.0),
        "paper": Profile(blocks=20, warm_up_s=2.0, duration_s=20.0, idle_s=60.0),
    },
    conclude=conclude,
)
