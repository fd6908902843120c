"""The studies' own services. Each runs on every transport, as the stock service does."""

from importlib import import_module
from typing import cast

from stock_service.rpc.service import Service

STOCK = "stock"
"""The stock service itself, which the same command serves."""

NULL = "null"
"""No service: the load client's null server, which answers every request with the same reply."""

PLAIN = "plain-grpcio"
"""The stock service written as in grpcio's examples: a peer in Python, without any part of our server."""

SERVICES: dict[str, str] = {
    "echo": "experiments.services.echo:echo",
    "echo-twice": "experiments.services.echo:echo_twice",
    "entity": "experiments.services.entity:entity",
    "greeter": "experiments.services.greeter:greeter",
    "sort": "experiments.services.sort:sort",
}
"""Every service by the name that ``python -m experiments.services serve`` takes, and the function that makes it."""

OURS = (STOCK, *SERVICES)
"""Our own services, by name."""

STATEFUL = ("entity",)
"""Services that keep values in their process, so that only one process may serve them."""


def made(name: str) -> Service:
    """The service of this name. This call loads its module."""
    module, _, maker = SERVICES[name].partition(":")
    return cast(Service, getattr(import_module(module), maker)())
