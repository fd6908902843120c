"""Requests to the studies' services: their replies pass the check, and other replies fail."""

import pickle
from dataclasses import replace
from operator import attrgetter

import pytest

from clients.load.plan.load_plan import RequestType
from experiments.helloworld import greeter_pb2
from experiments.services import SERVICES, made
from experiments.services.entity import PUT_ENTITY
from experiments.services.workloads import arrays, echo_request, names_of, request_types
from experiments.v1 import echo_pb2, entity_pb2, sort_pb2
from stock_service.rpc.errors import InternalFault
from stock_service.rpc.service import Service
from stock_service.trading.model import Status
from tests.raw_service import answered

SIZED = replace(echo_request(10_000), name="echo-10000")
LONG = [replace(each, name=f"{each.name}-300") for each in request_types(300) if each.name in names_of("sort")]
"""Request types with arrays of 300 numbers."""

EVERY = {each.name: each for each in (*request_types(), SIZED, *LONG)}


def service_of(request_type: RequestType) -> Service:
    """Service with the method of a request type."""
    return next(each for each in map(made, SERVICES) if request_type.path in each.methods)


@pytest.mark.parametrize("sent", [each for each in EVERY.values() if each.path.startswith("/")], ids=attrgetter("name"))
def test_every_request_is_answered_as_its_check_wants(sent: RequestType) -> None:
    """Replies pass the check of a pickled request type, also when a request is repeated. Request types of routes need
    HTTP, and are left out."""
    request_type: RequestType = pickle.loads(pickle.dumps(sent))
    service = service_of(request_type)
    for payload in request_type.payloads[:40] * 2:
        assert request_type.check(answered(service, request_type.path, payload)) == Status.OK


def test_an_echo_by_way_of_one_message_more_says_the_same() -> None:
    """``echo-twice`` has the replies of ``echo``."""
    request_type = EVERY["echo"]
    for payload in request_type.payloads:
        assert answered(made("echo-twice"), request_type.path, payload) == payload


GET, PUT = entity_pb2.GetEntityResponse, entity_pb2.PutEntityResponse

WRONG = [
    ("echo", b"\xff"),
    ("say-hello", greeter_pb2.HelloReply(message="Hello you").SerializeToString()),
    ("merge", sort_pb2.MergeSortResponse(values=(38, 27, 43, 3, 9, 82, 10)).SerializeToString()),
    ("quick", sort_pb2.QuickSortResponse(values=(3, 9, 10, 27, 38, 43)).SerializeToString()),
    ("quick", b""),
    ("quick-300", sort_pb2.QuickSortResponse(values=(3, 9, 10, 27, 38, 43, 82)).SerializeToString()),
    ("echo-10000", echo_pb2.EchoResponse(text="a" * 9_999).SerializeToString()),
    ("entity-get", GET(id=1, description="entity 2", value=1).SerializeToString()),
    ("entity-get", GET(id=0, description="entity 0", value=1).SerializeToString()),
    ("entity-get", GET(id=1, description="entity 1", value=float("nan")).SerializeToString()),
    ("entity-put", PUT(created=True).SerializeToString()),
    ("entity-put-new", b"\xff"),
    ("get", b'{"id": 1, "description": "entity 1", "value": 1.0}'),
    ("get", b"{"),
    ("put", b'{"created": true}'),
]


@pytest.mark.parametrize(("name", "reply"), WRONG)
def test_a_wrong_reply_is_found(name: str, reply: bytes) -> None:
    """A wrong reply is INTERNAL."""
    with pytest.raises(InternalFault):
        EVERY[name].check(reply)


@pytest.mark.parametrize("size", [8, 132, 10_000, 100_000])
def test_a_sized_echo_has_so_many_bytes(size: int) -> None:
    """Messages of an echo with a size have this number of bytes."""
    assert {len(payload) for payload in echo_request(size).payloads} == {size}


def test_seeded_arrays_are_drawn_by_their_seed() -> None:
    """Equal seeds and lengths give equal arrays. Another seed gives other arrays."""
    assert arrays(50) == arrays(50) != arrays(50, seed=1)
    assert {len(values) for values in arrays(50)} == {50}


def test_new_ids_are_new_once() -> None:
    """``entity-put-new`` stores new ids when it is sent for the first time."""
    put = EVERY["entity-put-new"]
    service = service_of(put)
    created = [PUT.FromString(answered(service, PUT_ENTITY, payload)).created for payload in put.payloads[:3] * 2]
    assert created == [True] * 3 + [False] * 3


def test_every_request_belongs_to_one_service() -> None:
    """Every request type belongs to one service, also a request type of a route. Both echoes have equal request
    types."""
    named = [name for service in SERVICES if service != "echo-twice" for name in names_of(service)]
    assert names_of("echo-twice") == names_of("echo")
    assert sorted(named) == sorted(each.name for each in request_types())
    assert names_of("sort") == ("merge", "quick")
