"""What transports on a messaging library share: one message in, one message out, and what to say of a missing library.

The messages are those of ``wire/messages.py``; the server core answers them. Left out: the libraries themselves, which
only their transports know.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from stock_service.rpc.errors import UsageError


@contextmanager
def library(transport: str, package: str) -> Iterator[None]:
    """Around an import of what a package brings. Raises UsageError where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        allowed = f"another, or this one with its library: {package}, which the extra `transports` installs"
        raise UsageError("--transport", transport, allowed) from error
