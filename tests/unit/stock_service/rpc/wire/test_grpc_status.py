"""gRPC's statuses as faults."""

import grpc
import pytest

from stock_service.rpc.errors import FAULTS, InternalFault
from stock_service.rpc.wire.grpc_status import status_fault

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
