"""The studies' own services. Each runs on every transport, as the stock service does."""

from collections.abc import Callable

from experiments.services.echo import echo, echo_twice
from experiments.services.entity import entity
from experiments.services.greeter import greeter
from experiments.services.sort import sort
from stock_service.rpc.service import Service

STOCK = "stock"
"""The stock service itself, which the same command serves."""

NULL = "null"
"""No service: the load client's null server, which gives every request the same reply to Lookup."""

PLAIN = "plain-grpcio"
"""The stock service as grpcio's examples write a server: a peer in Python, with nothing of our server."""

SERVICES: dict[str, Callable[[], Service]] = {
    "echo": echo,
    "echo-twice": echo_twice,
    "entity": entity,
    "greeter": greeter,
    "sort": sort,
}
"""Every service by the name that ``python -m experiments.services serve`` takes."""

OURS = (STOCK, *SERVICES)
"""The services of ours, by name."""

STATEFUL = ("entity",)
"""Services that keep values in their process: they cannot be served by several."""
