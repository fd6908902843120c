"""What the load client sends to the studies' services passes its own check, and other replies do not."""

import pickle

import pytest

from clients.load.plan.load_plan import RequestType
from experiments.helloworld import greeter_pb2
from experiments.services import SERVICES
from experiments.services.entity import GET_ENTITY, PUT_ENTITY
from experiments.services.workloads import REQUEST_TYPES, arrays, sort_requests
from experiments.v1 import entity_pb2, sort_pb2
from stock_service.rpc.errors import InternalFault
from stock_service.rpc.service import Service
from stock_service.trading.model import Status
from tests.raw_service import answered

TYPES = {each.name: each for each in (*REQUEST_TYPES, *sort_requests("300", arrays(300)))}


def service_of(request_type: RequestType) -> Service:
    """The service that has the method."""
    return next(made for made in (make() for make in SERVICES.values()) if request_type.path in made.methods)


@pytest.mark.parametrize("name", TYPES)
def test_every_request_is_answered_as_its_check_wants(name: str) -> None:
    """Twice over, for a store that changes; a process that gets the type pickled checks alike."""
    request_type: RequestType = pickle.loads(pickle.dumps(TYPES[name]))
    service = service_of(request_type)
    for payload in request_type.payloads[:40] * 2:
        assert request_type.check(answered(service, request_type.path, payload)) == Status.OK


GET, PUT = entity_pb2.GetEntityResponse, entity_pb2.PutEntityResponse

WRONG = [
    ("echo", b"\xff"),
    ("say-hello", greeter_pb2.HelloReply(message="Hello you").SerializeToString()),
    ("merge-textbook", sort_pb2.MergeSortResponse(values=(38, 27, 43, 3, 9, 82, 10)).SerializeToString()),
    ("quick-textbook", sort_pb2.QuickSortResponse(values=(3, 9, 10, 27, 38, 43)).SerializeToString()),
    ("quick-300", b""),
    ("entity-get", GET(id=1, description="entity 2", value=1).SerializeToString()),
    ("entity-get", GET(id=0, description="entity 0", value=1).SerializeToString()),
    ("entity-get", GET(id=1, description="entity 1", value=float("nan")).SerializeToString()),
    ("entity-put", PUT(created=True).SerializeToString()),
    ("entity-put-new", b"\xff"),
]


@pytest.mark.parametrize(("name", "reply"), WRONG)
def test_a_wrong_reply_is_found(name: str, reply: bytes) -> None:
    """Whatever was not to be expected is INTERNAL."""
    with pytest.raises(InternalFault):
        TYPES[name].check(reply)


def test_seeded_arrays_are_drawn_by_their_seed() -> None:
    """The same seed and length draw the same arrays, and another seed draws others."""
    assert arrays(50) == arrays(50) != arrays(50, seed=1)
    assert {len(values) for values in arrays(50)} == {50}


def test_new_ids_are_new_once() -> None:
    """Among the entity's requests some create, when they are first sent."""
    put = TYPES["entity-put-new"]
    service = service_of(put)
    created = [PUT.FromString(answered(service, PUT_ENTITY, payload)).created for payload in put.payloads[:3] * 2]
    assert created == [True] * 3 + [False] * 3
    assert put.path != GET_ENTITY
