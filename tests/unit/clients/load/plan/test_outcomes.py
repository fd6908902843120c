"""Outcomes of a request, as one byte."""

from clients.load.plan.load_plan import REQUEST_TYPES_MAX
from clients.load.plan.outcomes import (
    ERROR_KINDS,
    FAULT_FIRST,
    INVALID_REPLY,
    NEVER_SENT,
    OUTCOMES,
    STATUS_NAMES,
    TYPE_STEP,
    by_name,
    fault_outcome,
)
from stock_service.rpc.errors import FAULTS, FaultCode, Unavailable
from stock_service.trading.model import Status


def test_every_outcome_has_a_number_of_its_own() -> None:
    """Within a request type statuses come before faults, and no two errors have the same number or name."""
    assert len(ERROR_KINDS) == len(FaultCode) + 2
    assert len(set(ERROR_KINDS.values())) == len(ERROR_KINDS)
    assert all(0 < number < FAULT_FIRST for number in STATUS_NAMES)
    assert all(FAULT_FIRST <= number < TYPE_STEP for number in ERROR_KINDS)
    assert {ERROR_KINDS[fault_outcome(fault(""))] for fault in FAULTS.values()} == {
        code.name.lower() for code in FaultCode
    }
    assert ERROR_KINDS[fault_outcome(Unavailable(""))] == "unavailable"
    assert (ERROR_KINDS[NEVER_SENT], ERROR_KINDS[INVALID_REPLY]) == ("never_sent", "invalid_reply")


def test_the_outcomes_of_all_types_fit_in_a_byte() -> None:
    """The outcomes of all types, each with its step, fit in a byte."""
    assert REQUEST_TYPES_MAX * TYPE_STEP == OUTCOMES == 256


def test_what_occurred_is_given_by_name() -> None:
    """The outcomes that occurred are given by name, for one request type."""
    counts = [0] * OUTCOMES
    counts[TYPE_STEP + Status.OK] = 3
    counts[TYPE_STEP + NEVER_SENT] = 2
    counts[int(Status.OK)] = 1
    assert dict(by_name(counts, TYPE_STEP, STATUS_NAMES)) == {"OK": 3}
    assert dict(by_name(counts, TYPE_STEP, ERROR_KINDS)) == {"never_sent": 2}
    assert dict(by_name(counts, 0, STATUS_NAMES)) == {"OK": 1}
