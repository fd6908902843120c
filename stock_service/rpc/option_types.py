"""Types of options, for argparse. A type is a function that converts an option's text to a value. For a text that is
not allowed, the function raises an error of one line.

The parser is in the folder ``process``. This module is not, since transports also use these types, and must not import
``process``.
"""

import argparse
import socket
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_LIKE = 0.75
"""Smallest similarity at which a known word is suggested for a mistyped word; difflib computes the similarity. The
words --grace-s and --read-s are less similar.
"""


def integer(low: int, high: int) -> Callable[[str], int]:
    """Makes an option type: a whole number from ``low`` to ``high``."""
    return _number(int, low, high, f"a whole number from {low} to {high}")


def number(low: float, high: float) -> Callable[[str], float]:
    """Makes an option type: a number from ``low`` to ``high``."""
    return _number(float, low, high, f"a number from {low:g} to {high:g}")


def seconds(low: float, high: float) -> Callable[[str], float]:
    """Makes an option type: a number of seconds from ``low`` to ``high``."""
    return _number(float, low, high, f"seconds, from {low:g} to {high:g}")


def meant(given: str, known: Iterable[str]) -> str:
    """Returns a question that suggests the known word most similar to a mistyped word. Empty if no word is similar."""
    from difflib import get_close_matches  # imported only after a typing error

    like = get_close_matches(given, tuple(known), n=1, cutoff=_LIKE)
    return f" (did you mean {like[0]}?)" if like else ""


def _number(kind: Callable[[str], T], low: T, high: T, allowed: str) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            value = kind(text)
            if low <= value <= high:  # type: ignore[operator]  # int or float; NaN is in no range
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}")

    return parse


def address(text: str, port_min: int = 1) -> tuple[str, int]:
    """Option type: ``HOST:PORT``, with an IPv6 address in brackets. ``port_min`` is the smallest allowed port."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    numbered = port.isascii() and port.isdigit() and port_min <= int(port) <= 65535
    if not colon or not bare or not numbered or bracketed != (":" in bare) or "[" in bare or "]" in bare:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: HOST:PORT, such as 127.0.0.1:50051 or [::1]:50051")
    try:
        bare.encode("idna")  # a socket does this later, and would raise UnicodeError instead of OSError
    except UnicodeError as error:
        allowed = "HOST:PORT, with a host of labels of 1 to 63 characters"
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}") from error
    return bare, int(port)


def shown_address(address: tuple[str, int]) -> str:
    """Returns an address as ``HOST:PORT``, in the form that the function ``address`` reads."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def family_of(host: str) -> socket.AddressFamily:
    """Returns the address family to listen on: IPv6 for an IPv6 address, IPv4 for any other address and for a name."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET
