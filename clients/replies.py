"""Replies from the wire, each checked against the replies that its method allows.

A function takes a reply's bytes and gives the decoded message. For a wrong reply the function raises InternalFault,
whose message names one of three faults:

- bytes that do not decode;
- a status that the method never gives;
- values that contradict the status, such as a refusal with a commit number.

A reply to a repeated ``request_id`` passes the check, since the server repeats its first reply. Left out: the check of
a reply against the state of the catalog, which needs a history.
"""

from google.protobuf.message import DecodeError

from stock_service.rpc.errors import InternalFault
from stock_service.trading.model import Status
from stock_service.v1 import stock_pb2

_OK, _SUSPENDED, _UNKNOWN = int(Status.OK), int(Status.SUSPENDED), int(Status.UNKNOWN_STOCK)
_NAMES = {int(status): status.name for status in Status}
_LOOKED_UP = {_OK, _SUSPENDED}
_TRADE_REFUSALS = {_UNKNOWN, int(Status.INVALID_QUANTITY), int(Status.INVALID_SIDE)}
_UPDATE_REFUSALS = {_UNKNOWN, int(Status.INVALID_PRICE)}


def lookup(payload: bytes) -> stock_pb2.LookupResponse:
    """Decodes a reply to Lookup. Raises InternalFault for a wrong reply."""
    try:
        reply = stock_pb2.LookupResponse.FromString(payload)
    except DecodeError as error:
        raise _undecodable("Lookup", payload) from error
    status = reply.status
    if status in _LOOKED_UP:
        if reply.price_cents >= 0 and reply.volume >= 0 and reply.sequence >= 0:
            return reply
    elif status == _UNKNOWN and not (reply.price_cents or reply.volume or reply.sequence):
        return reply
    raise _wrong("Lookup", status, f"price_cents {reply.price_cents}, {_volume_and_sequence(reply)}")


def trade(payload: bytes) -> stock_pb2.TradeResponse:
    """Decodes a reply to Trade. Raises InternalFault for a wrong reply."""
    try:
        reply = stock_pb2.TradeResponse.FromString(payload)
    except DecodeError as error:
        raise _undecodable("Trade", payload) from error
    status = reply.status
    if status == _OK:
        if reply.volume >= 1 and reply.sequence >= 1:
            return reply
    elif reply.sequence == 0 and (
        (status == _SUSPENDED and reply.volume >= 0) or (status in _TRADE_REFUSALS and reply.volume == 0)
    ):
        return reply
    raise _wrong("Trade", status, _volume_and_sequence(reply))


def update(payload: bytes) -> stock_pb2.UpdateResponse:
    """Decodes a reply to Update. Raises InternalFault for a wrong reply."""
    try:
        reply = stock_pb2.UpdateResponse.FromString(payload)
    except DecodeError as error:
        raise _undecodable("Update", payload) from error
    status = reply.status
    if (status == _OK and reply.sequence >= 1) or (status in _UPDATE_REFUSALS and reply.sequence == 0):
        return reply
    raise _wrong("Update", status, f"sequence {reply.sequence}")


def _undecodable(method: str, payload: bytes) -> InternalFault:
    return InternalFault(f"a reply to {method} of {len(payload)} bytes that are no {method}Response")


def _wrong(method: str, status: int, rest: str) -> InternalFault:
    name = _NAMES.get(status, f"unknown status {status}")
    return InternalFault(f"a reply that {method} never gives: {name}, {rest}")


def _volume_and_sequence(reply: stock_pb2.LookupResponse | stock_pb2.TradeResponse) -> str:
    return f"volume {reply.volume}, sequence {reply.sequence}"
