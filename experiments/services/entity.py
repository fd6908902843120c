"""A store of entities with two levels of read-write locks: one lock on the map of ids, and one lock on each entry.

| request | the map's lock | the entry's lock |
|---|---|---|
| get | read | read |
| put of a known id | read | write |
| put of a new id | write | none, since no other thread uses the map |

Several threads can hold a lock for reading. A thread that holds a lock for writing excludes all other threads. So a put
of a new id waits for all requests that have begun. Requests for different known ids do not wait for each other. A
thread takes the map's lock before an entry's lock, so that no deadlock can occur. Left out: removing an entity.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from experiments.v1 import entity_pb2
from stock_service.rpc.errors import InvalidRequest, NotFound, Overloaded
from stock_service.rpc.service import Method, Route, Service
from stock_service.trading.locking import ReadWriteLock

ENTITY_SERVICE = entity_pb2.DESCRIPTOR.services_by_name["EntityService"].full_name
GET_ENTITY = f"/{ENTITY_SERVICE}/GetEntity"
PUT_ENTITY = f"/{ENTITY_SERVICE}/PutEntity"

KNOWN_IDS = range(1, 1001)
"""Ids in a new store. Id N has the description ``entity N`` and the value N ÷ 2."""

ENTITIES_MAX = 1_000_000
"""Largest number of entities in a store. These entities take some 500 MB of memory."""


@dataclass(frozen=True, slots=True)
class Entity:
    """Entity that clients read and put: an id, a description and a finite value."""

    id: int
    description: str
    value: float


@dataclass(slots=True)
class Entry:
    """An entity's fields in the store. ``lock`` guards the fields, so that no reader sees one new and one old field."""

    description: str
    value: float
    lock: ReadWriteLock = field(default_factory=ReadWriteLock)


class EntityStore:
    """Map of entities by id. Thread-safe. A call blocks only while other threads hold locks that the call needs."""

    def __init__(
        self,
        entities: Iterable[Entity] = (),
        new_lock: Callable[[], ReadWriteLock] = ReadWriteLock,
        new_entry: Callable[[str, float, ReadWriteLock], Entry] = Entry,
    ) -> None:
        """Stores ``entities``. ``new_lock`` makes locks, and ``new_entry`` makes entries. Tests replace both functions.

        Raises Overloaded for more than ``ENTITIES_MAX`` entities.
        """
        self._new_lock = new_lock
        self._new_entry = new_entry
        self._map_lock = new_lock()  # guards the set of ids in _entries
        self._entries: dict[int, Entry] = {}
        for entity in entities:
            self.put(entity)

    def get(self, id: int) -> Entity | None:  # noqa: A002  # the field's name
        """Returns the entity that the last ``put`` with this id stored; None for an unknown id."""
        with self._map_lock.reader:
            entry = self._entries.get(id)
            if entry is None:
                return None
            with entry.lock.reader:
                return Entity(id, entry.description, entry.value)

    def put(self, entity: Entity) -> bool:
        """Stores an entity. Returns True if the id is new, and False if the entity replaces a stored entity. Raises
        Overloaded for a new id if the store is full.
        """
        with self._map_lock.reader:
            entry = self._entries.get(entity.id)
            if entry is not None:
                with entry.lock.writer:
                    _write(entry, entity)
                return False
        with self._map_lock.writer:
            return self._add(entity)

    def _add(self, entity: Entity) -> bool:
        """Stores an entity whose id ``put`` did not find. Returns True, or False if another thread has stored this id
        meanwhile. The caller must hold the map's lock for writing. Raises Overloaded if the store is full.
        """
        entry = self._entries.get(entity.id)
        if entry is not None:  # another put of the same id came first
            _write(entry, entity)
            return False
        if len(self._entries) >= ENTITIES_MAX:
            raise Overloaded(f"{ENTITIES_MAX} entities are stored, the limit")
        self._entries[entity.id] = self._new_entry(entity.description, entity.value, self._new_lock())
        return True


def _write(entry: Entry, entity: Entity) -> None:
    """Replaces an entry's fields. The caller must hold the entry's lock or the map's lock for writing."""
    entry.description = entity.description
    entry.value = entity.value


def entity() -> Service:
    """Entity service on a new store that has ``KNOWN_IDS``. The methods also have HTTP routes: ``GET /entities/{id}``
    and ``PUT /entities/{id}``.

    ``get`` raises NotFound for an unknown id. ``put`` raises InvalidRequest for a value that is not finite, and
    Overloaded if the store is full.
    """
    store = EntityStore(Entity(each, f"entity {each}", each / 2) for each in KNOWN_IDS)

    def get(request: entity_pb2.GetEntityRequest) -> entity_pb2.GetEntityResponse:
        found = store.get(request.id)
        if found is None:
            raise NotFound(f"no entity has the id {request.id}")
        return entity_pb2.GetEntityResponse(id=found.id, description=found.description, value=found.value)

    def put(request: entity_pb2.PutEntityRequest) -> entity_pb2.PutEntityResponse:
        if not math.isfinite(request.value):
            raise InvalidRequest(f"value: got {request.value}, allowed: a finite number")
        created = store.put(Entity(request.id, request.description, request.value))
        return entity_pb2.PutEntityResponse(created=created)

    return Service(
        ENTITY_SERVICE,
        {
            GET_ENTITY: Method(
                entity_pb2.GetEntityRequest,
                entity_pb2.GetEntityResponse,
                get,
                route=Route("GET", "/entities/{id}"),
            ),
            PUT_ENTITY: Method(
                entity_pb2.PutEntityRequest,
                entity_pb2.PutEntityResponse,
                put,
                route=Route("PUT", "/entities/{id}"),
            ),
        },
    )
