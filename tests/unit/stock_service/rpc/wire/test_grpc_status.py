"""gRPC's statuses as faults: one table, for grpcio's client and the lean one."""

import grpc
import pytest

from stock_service.rpc.errors import FAULTS, InternalFault
from stock_service.rpc.grpcio.client import _fault
from stock_service.rpc.wire.grpc_status import status_fault


class Ended(grpc.RpcError):
    """The error of grpcio's blocking client, as far as it is asked."""

    def __init__(self, status: grpc.StatusCode) -> None:
        self._status = status

    def code(self) -> grpc.StatusCode:
        return self._status

    def details(self) -> str:
        return "why"


@pytest.mark.parametrize("status", [status for status in grpc.StatusCode if status is not grpc.StatusCode.OK])
def test_a_status_is_the_same_fault_for_every_client(status: grpc.StatusCode) -> None:
    """A status gives every client the same fault and words."""
    one, other = status_fault(status.value[0], "why", "host:1"), _fault(Ended(status), "host:1")
    assert (type(one), one.detail) == (type(other), other.detail)


OTHERS = [
    status
    for status in grpc.StatusCode
    if status.value[0] not in FAULTS and status not in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED)
]


@pytest.mark.parametrize("status", OTHERS)
def test_what_we_have_no_fault_for_has_grpcs_name(status: grpc.StatusCode) -> None:
    """A status without a fault here has the name that grpcio gives it."""
    fault = status_fault(status.value[0], "why", "host:1")
    assert (type(fault), fault.detail) == (InternalFault, f"{status.name}: why")
