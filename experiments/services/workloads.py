"""Requests that the load client sends to the studies' services, and the checks of the replies.

A load client draws requests from a fixed set, and sends the same request several times. So the first ``entity-put-new``
of an id stores a new id, and a later ``entity-put-new`` of this id stores a known id. The reply states if the id was
new. Both replies are valid.
"""

import json
import math
import random
from collections.abc import Collection, Iterable
from functools import cache, partial
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from clients.load.plan.load_plan import RequestType
from experiments.helloworld import greeter_pb2
from experiments.services import made
from experiments.services.echo import ECHO
from experiments.services.entity import GET_ENTITY, KNOWN_IDS, PUT_ENTITY
from experiments.services.greeter import SAY_HELLO
from experiments.services.sort import MERGE_SORT, QUICK_SORT
from experiments.v1 import echo_pb2, entity_pb2, sort_pb2
from stock_service.rpc.errors import InternalFault
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.model import Status

_TEXTS = tuple(stock.name for stock in DEFAULT_STOCKS)
"""Texts of the echo requests: the names of the default stocks. So an echo request is as long as a Lookup."""


_NAME = "world"
"""Name that the client of gRPC's examples sends."""

ARRAY = (38, 27, 43, 3, 9, 82, 10)
"""Array of seven numbers that textbooks sort. Requests have this array if no length is given."""

ARRAYS = 16
"""Number of different arrays that a load sends."""

VALUES = range(2**31)
"""Range from which the numbers of an array are drawn. The client in Go draws from an equal range, so that the messages
of both clients have about the same number of bytes."""

ENTITIES = 100
"""Number of different known ids that the requests of a load read or put."""

NEW_IDS = range(10**6, 10**6 + 4096)
"""Ids that ``entity-put-new`` puts. A new server lacks these ids."""

Reply = TypeVar("Reply", bound=Message)


def decoded(kind: type[Reply], reply: bytes) -> Reply:
    """Decodes a reply to a message of the type ``kind``. Raises InternalFault if the bytes are no such message."""
    try:
        return kind.FromString(reply)
    except DecodeError as error:
        raise InternalFault(f"{len(reply)} bytes that are no {kind.DESCRIPTOR.name}") from error


def echoed(reply: bytes, sent: Collection[str] = _TEXTS) -> int:
    """Checks the reply to an echo: returns status OK if the reply has one of the texts ``sent``. Raises InternalFault
    for any other reply.
    """
    text = decoded(echo_pb2.EchoResponse, reply).text
    if text not in sent:
        raise InternalFault(f"an echo of {text[:32]!r}, which was not sent")
    return Status.OK


def greeted(reply: bytes) -> int:
    """Checks the reply of a greeter: returns status OK if the reply greets the name in the request. Raises
    InternalFault for any other reply.
    """
    message = decoded(greeter_pb2.HelloReply, reply).message
    if message != f"Hello {_NAME}":
        raise InternalFault(f"a greeting of somebody else: {message!r}")
    return Status.OK


def arrays(length: int, seed: int = 0) -> list[list[int]]:
    """Draws ``ARRAYS`` arrays, each with ``length`` random numbers. Equal seeds give equal arrays."""
    rng = random.Random(f"{seed}/{length}")
    return [[rng.choice(VALUES) for _ in range(length)] for _ in range(ARRAYS)]


def sort_requests(given: Iterable[Iterable[int]]) -> tuple[RequestType, RequestType]:
    """Request types ``merge`` and ``quick``: requests to sort the arrays ``given`` by merge sort and by quicksort. The
    peers' own clients use the same two names.
    """
    sent = [list(values) for values in given]
    expected = frozenset(tuple(sorted(values)) for values in sent)
    merge = tuple(sort_pb2.MergeSortRequest(values=values).SerializeToString() for values in sent)
    quick = tuple(sort_pb2.QuickSortRequest(values=values).SerializeToString() for values in sent)
    return (
        RequestType("merge", MERGE_SORT, merge, partial(_sorted, sort_pb2.MergeSortResponse, expected)),
        RequestType("quick", QUICK_SORT, quick, partial(_sorted, sort_pb2.QuickSortResponse, expected)),
    )


def _sorted(
    kind: type[sort_pb2.MergeSortResponse] | type[sort_pb2.QuickSortResponse],
    expected: frozenset[tuple[int, ...]],
    reply: bytes,
) -> int:
    """Checks the reply to a sort: returns status OK if the reply is one of the sorted arrays ``expected``. Raises
    InternalFault for any other reply.
    """
    values = tuple(decoded(kind, reply).values)
    if values not in expected:
        raise InternalFault(f"{len(values)} values that are none of the arrays that were sent, in order")
    return Status.OK


def _got(reply: bytes) -> int:
    """Checks the reply to a get: returns status OK if the reply is a known entity with the right description. Raises
    InternalFault for any other reply.
    """
    entity = decoded(entity_pb2.GetEntityResponse, reply)
    if entity.id not in KNOWN_IDS or not math.isfinite(entity.value) or entity.description != f"entity {entity.id}":
        raise InternalFault(f"an entity that was not asked for: {entity.id} {entity.description!r}")
    return Status.OK


def _put(reply: bytes) -> int:
    """Checks the reply to a put of an id that may be new or known: returns status OK for every reply to a put. Raises
    InternalFault for bytes that are no reply to a put.
    """
    decoded(entity_pb2.PutEntityResponse, reply)
    return Status.OK


def _put_known(reply: bytes) -> int:
    """Checks the reply to a put of a known id: returns status OK if the store did not create an entity. Raises
    InternalFault for any other reply.
    """
    if decoded(entity_pb2.PutEntityResponse, reply).created:
        raise InternalFault("an id that the store begins with was new to it")
    return Status.OK


def _puts(ids: Iterable[int]) -> tuple[bytes, ...]:
    requests = (entity_pb2.PutEntityRequest(id=each, description=f"entity {each}", value=each / 2) for each in ids)
    return tuple(request.SerializeToString() for request in requests)


def _entity_requests() -> tuple[RequestType, ...]:
    """Request types of the entity service: ``entity-get`` reads known ids, ``entity-put`` changes known ids, and
    ``entity-put-new`` stores new ids.
    """
    ids = KNOWN_IDS[:ENTITIES]
    gets = tuple(entity_pb2.GetEntityRequest(id=each).SerializeToString() for each in ids)
    return (
        RequestType("entity-get", GET_ENTITY, gets, _got),
        RequestType("entity-put", PUT_ENTITY, _puts(ids), _put_known),
        RequestType("entity-put-new", PUT_ENTITY, _puts(NEW_IDS), _put),
    )


def echo_request(size: int | None = None) -> RequestType:
    """Request type ``echo``. Each message has one of a few texts, and ``size`` bytes (8 or more).

    Without a size, a message is as long as a Lookup. For a few sizes, such as 128 to 130, a message is one byte too
    short. The reason: protobuf encodes the length of a shorter text in one byte less.
    """
    texts = _TEXTS
    if size is not None:
        head = echo_pb2.EchoRequest(text="x" * size).ByteSize() - size
        texts = tuple(letter * (size - head) for letter in "abcd")
    payloads = tuple(echo_pb2.EchoRequest(text=text).SerializeToString() for text in texts)
    return RequestType("echo", ECHO, payloads, partial(echoed, sent=frozenset(texts)))


ROUTED_ID = 1
"""Id of the entity that the requests by HTTP route read and put."""


def _got_by_route(reply: bytes) -> int:
    """Checks the JSON reply to a get by HTTP route: returns status OK if the reply is the entity ``ROUTED_ID`` of a new
    store. Raises InternalFault for any other reply.
    """
    if _in_json(reply) != _routed_entity():
        raise InternalFault(f"an entity that was not asked for: {reply[:80]!r}")
    return Status.OK


def _put_by_route(reply: bytes) -> int:
    """Checks the JSON reply to a put by HTTP route: returns status OK if the store did not create an entity. Raises
    InternalFault for any other reply.
    """
    if _in_json(reply) != {"created": False}:
        raise InternalFault(f"no reply to a put of a known id: {reply[:80]!r}")
    return Status.OK


def _in_json(reply: bytes) -> object:
    try:
        return json.loads(reply)
    except ValueError as error:
        raise InternalFault(f"{len(reply)} bytes that are no JSON") from error


def _routed_entity() -> dict[str, object]:
    return {"id": ROUTED_ID, "description": f"entity {ROUTED_ID}", "value": ROUTED_ID / 2}


def _routed_requests() -> tuple[RequestType, ...]:
    """Request types ``get`` and ``put``, which read and put one entity by the service's HTTP routes. Servers in other
    languages have these routes too."""
    at, entity = f"/entities/{ROUTED_ID}", json.dumps(_routed_entity(), separators=(",", ":")).encode()
    return (
        RequestType("get", f"GET {at}", (b"",), _got_by_route),
        RequestType("put", f"PUT {at}", (entity,), _put_by_route),
    )


def _say_hello_request() -> RequestType:
    payload = greeter_pb2.HelloRequest(name=_NAME).SerializeToString()
    return RequestType("say-hello", SAY_HELLO, (payload,), greeted)


@cache
def request_types(array_len: int = 0, size: int | None = None) -> tuple[RequestType, ...]:
    """Request types of the studies' services, for ``LoadPlan.request_types``, without the request types of the stock
    service.

    Requests to sort have arrays of ``array_len`` numbers; 0 selects the array of textbooks. Echoes have messages of
    ``size`` bytes; None selects the length of a Lookup.
    """
    sorts = sort_requests(arrays(array_len) if array_len else [ARRAY])
    return echo_request(size), _say_hello_request(), *sorts, *_entity_requests(), *_routed_requests()


def names_of(service: str) -> tuple[str, ...]:
    """Names of the request types that the service ``service`` answers. Imports the service. Raises KeyError for a name
    that is not in ``SERVICES``.
    """
    methods = made(service).methods
    routes = [(each.route.verb, each.route.path.partition("{")[0]) for each in methods.values() if each.route]

    def answers(path: str) -> bool:
        verb, _, where = path.partition(" ")
        return path in methods or any(verb == its and where.startswith(begin) for its, begin in routes)

    return tuple(each.name for each in request_types() if answers(each.path))
