"""Types of options, for argparse: what each takes, and one line about anything else.

Here, and not beside the parser, because a transport says its own options too, and knows no process.
"""

import argparse
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def integer(low: int, high: int) -> Callable[[str], int]:
    """An option type: a whole number from ``low`` to ``high``."""
    return _number(int, low, high, f"a whole number from {low} to {high}")


def number(low: float, high: float) -> Callable[[str], float]:
    """An option type: a number from ``low`` to ``high``."""
    return _number(float, low, high, f"a number from {low:g} to {high:g}")


def seconds(low: float, high: float) -> Callable[[str], float]:
    """An option type: a number of seconds from ``low`` to ``high``."""
    return _number(float, low, high, f"seconds, from {low:g} to {high:g}")


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


def address(text: str) -> tuple[str, int]:
    """An option type: ``HOST:PORT``."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: HOST:PORT, such as 127.0.0.1:50051")
    try:
        host.encode("idna")  # as a socket will, where it would be no OSError
    except UnicodeError as error:
        allowed = "HOST:PORT, with a host of labels of 1 to 63 characters"
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}") from error
    return host, int(port)
