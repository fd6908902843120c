"""Services of the studies. Each service runs on every transport, like the stock service."""

from importlib import import_module
from typing import cast

from stock_service.rpc.service import Service

STOCK = "stock"
"""Name of the stock service, which ``python -m experiments.services serve`` also serves."""

NULL = "null"
"""Name of the load client's null server, which answers every request with the same reply, and runs no service."""

PLAIN = "plain-grpcio"
"""Name of the stock service in the style of grpcio's examples: a peer in Python without any code of our server."""

SERVICES: dict[str, str] = {
    "echo": "experiments.services.echo:echo",
    "echo-twice": "experiments.services.echo:echo_twice",
    "entity": "experiments.services.entity:entity",
    "greeter": "experiments.services.greeter:greeter",
    "sort": "experiments.services.sort:sort",
}
"""Maps the name of a service to the function that makes the service, as ``MODULE:FUNCTION``. ``python -m
experiments.services serve`` takes these names.
"""

OURS = (STOCK, *SERVICES)
"""Names of the services that our own servers serve: the stock service and all ``SERVICES``."""

STATEFUL = ("entity",)
"""Services that keep values in their process, so that only one process may serve them."""


def made(name: str) -> Service:
    """Makes the service of this name, and imports the service's module. Raises KeyError for an unknown name."""
    module, _, maker = SERVICES[name].partition(":")
    return cast(Service, getattr(import_module(module), maker)())
