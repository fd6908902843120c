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
    fault_outcome,
)
from stock_service.rpc.errors import FAULTS, FaultCode


def test_every_outcome_has_a_number_of_its_own() -> None:
    """Within a request type statuses come before faults, and no two errors have the same number or name."""
    assert len(set(ERROR_KINDS.values())) == len(ERROR_KINDS) == len(FaultCode) + 2
    assert all(0 < number < FAULT_FIRST for number in STATUS_NAMES)
    assert all(FAULT_FIRST <= number < TYPE_STEP for number in ERROR_KINDS)
    for code in FaultCode:
        assert ERROR_KINDS[fault_outcome(FAULTS[code](""))] == code.name.lower()
    assert (ERROR_KINDS[NEVER_SENT], ERROR_KINDS[INVALID_REPLY]) == ("never_sent", "invalid_reply")


def test_the_outcomes_of_all_types_fit_in_a_byte() -> None:
    """The outcomes of all types, each with its step, fit in a byte."""
    assert REQUEST_TYPES_MAX * TYPE_STEP == OUTCOMES == 256
