"""What the load client sends to the studies' services, and how it checks their replies."""

from google.protobuf.message import DecodeError

from clients.load.plan.load_plan import RequestType
from experiments.services.echo import ECHO
from experiments.v1 import echo_pb2
from stock_service.rpc.errors import InternalFault
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.model import Status

_TEXTS = tuple(stock.name for stock in DEFAULT_STOCKS)
"""What a Lookup carries, so that an echo's request is as long as one."""


def echoed(reply: bytes) -> int:
    """OK for one of the texts that are sent. Raises InternalFault for anything else."""
    try:
        text = echo_pb2.EchoResponse.FromString(reply).text
    except DecodeError as error:
        raise InternalFault(f"{len(reply)} bytes that are no EchoResponse") from error
    if text not in _TEXTS:
        raise InternalFault(f"an echo of {text!r}, which was not sent")
    return Status.OK


REQUEST_TYPES = (
    RequestType("echo", ECHO, tuple(echo_pb2.EchoRequest(text=text).SerializeToString() for text in _TEXTS), echoed),
)
"""Requests of other services than the stock service, for ``LoadPlan.request_types``."""
