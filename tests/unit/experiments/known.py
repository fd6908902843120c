"""Optional values that a test knows to be there."""

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Returns the value. Fails for None."""
    assert value is not None
    return value
