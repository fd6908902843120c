"""The entity store and its service: replies and faults. ``tests/races/test_entity.py`` tests races."""

import pytest

from experiments.services.entity import GET_ENTITY, KNOWN_IDS, PUT_ENTITY, entity
from experiments.v1 import entity_pb2
from stock_service.rpc.errors import InvalidRequest, NotFound
from tests.raw_service import answered


def test_the_service_answers_from_its_store() -> None:
    """The store begins with the known ids. A get of an unknown id is NOT_FOUND until a put, and then has the entity of
    the last put. The first put of an id creates the entity."""
    service, new = entity(), KNOWN_IDS[-1] + 1
    asked = entity_pb2.GetEntityRequest(id=new).SerializeToString()
    with pytest.raises(NotFound, match=str(new)):
        answered(service, GET_ENTITY, asked)
    for text, created in (("first", True), ("ß", False)):
        put = entity_pb2.PutEntityRequest(id=new, description=text, value=0.1).SerializeToString()
        assert entity_pb2.PutEntityResponse.FromString(answered(service, PUT_ENTITY, put)).created == created
    expected = entity_pb2.GetEntityResponse(id=new, description="ß", value=0.1)
    assert entity_pb2.GetEntityResponse.FromString(answered(service, GET_ENTITY, asked)) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_is_a_finite_number(value: float) -> None:
    """A value that is not a finite number is INVALID_ARGUMENT."""
    payload = entity_pb2.PutEntityRequest(id=1, value=value).SerializeToString()
    with pytest.raises(InvalidRequest, match=f"value: got {value}"):
        answered(entity(), PUT_ENTITY, payload)
