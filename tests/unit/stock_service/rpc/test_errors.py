"""Errors: data first, words made of it; every fault has its own code, which is gRPC's."""

import grpc
import pytest

from stock_service.rpc.errors import FAULTS, Fault, FaultCode, StockServiceError, UsageError, printable


def test_a_usage_error_is_one_line_of_its_data() -> None:
    """A usage error keeps the option, the given value and the allowed ones, and has all three in one line."""
    error = UsageError("--port", "a\nb", "a whole number")
    assert (error.option, error.given, error.allowed) == ("--port", "a\nb", "a whole number")
    assert str(error) == "--port: got 'a\\nb', allowed: a whole number"
    assert isinstance(error, StockServiceError)
    assert str(UsageError("a.toml: price", None, "a value")) == "a.toml: price: missing, allowed: a value"


def test_every_code_has_its_fault() -> None:
    """The table has one class for each code, and the class that code. A code has the number and the name of gRPC's
    status."""
    assert set(FAULTS) == set(FaultCode)
    assert all(fault.code == code == grpc.StatusCode[fault.code.name].value[0] for code, fault in FAULTS.items())
    assert len(set(FAULTS.values())) == len(FaultCode)
    own = {each for each in Fault.__subclasses__() if each.__module__.startswith("stock_service.")}
    assert own == set(FAULTS.values())


def test_printed_text_only_shows() -> None:
    """Characters that a terminal obeys, that end a line or turn it round are written by their escapes."""
    obeyed = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u2028\u2029\u200e\u202e\u2066\u2069\ufeff\udcff"]
    for character in obeyed:
        assert printable(f"a{character}b") == f"a{repr(character)[1:-1]}b"
        assert printable(printable(character)) == printable(character)
    assert printable("Größe $1 – 日本") == "Größe $1 – 日本"


@pytest.mark.parametrize("fault", FAULTS.values())
def test_a_fault_says_its_code_and_detail(fault: type[Fault]) -> None:
    """A fault's text has its code and detail. The detail stays apart for the wire."""
    raised = fault("what happened")
    assert raised.detail == "what happened"
    assert str(raised) == f"{fault.code.name}: what happened"
    assert str(fault("\x1b[2J\r\n\u202e")) == f"{fault.code.name}: \\x1b[2J \\u202e"
    assert isinstance(raised, StockServiceError)
