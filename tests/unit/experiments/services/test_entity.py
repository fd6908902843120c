"""The entity store and its service: replies and faults. ``tests/races/test_entity.py`` tests races."""

import pytest

from experiments.services.entity import GET_ENTITY, KNOWN_IDS, PUT_ENTITY, Entity, EntityStore, entity
from experiments.v1 import entity_pb2
from stock_service.rpc.errors import InvalidRequest, NotFound
from tests.raw_service import answered


def test_what_was_put_last_is_got() -> None:
    """A get returns the entity of the last put. A put returns True for a new id."""
    store = EntityStore()
    assert store.get(-1) is None
    assert store.put(Entity(-1, "first", 1.5))
    assert not store.put(Entity(-1, "second", -2.5))
    assert store.get(-1) == Entity(-1, "second", -2.5)
    assert store.get(1) is None


def test_the_service_answers_from_its_store() -> None:
    """The store begins with the known ids. A get of an unknown id is NOT_FOUND until a put."""
    service, new = entity(), KNOWN_IDS[-1] + 1
    asked = entity_pb2.GetEntityRequest(id=new).SerializeToString()
    with pytest.raises(NotFound, match=str(new)):
        answered(service, GET_ENTITY, asked)
    put = entity_pb2.PutEntityRequest(id=new, description="ß", value=0.1).SerializeToString()
    assert entity_pb2.PutEntityResponse.FromString(answered(service, PUT_ENTITY, put)).created
    expected = entity_pb2.GetEntityResponse(id=new, description="ß", value=0.1)
    assert entity_pb2.GetEntityResponse.FromString(answered(service, GET_ENTITY, asked)) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_is_a_finite_number(value: float) -> None:
    """A value that is not a finite number is INVALID_ARGUMENT."""
    payload = entity_pb2.PutEntityRequest(id=1, value=value).SerializeToString()
    with pytest.raises(InvalidRequest, match=f"value: got {value}"):
        answered(entity(), PUT_ENTITY, payload)
