"""A history as JSON, for checkers outside this project.

The JSON is one object with two fields, ``stocks`` and ``operations``. A stock has its state, and the number of its last
commit, before the first operation. An operation has a request, ``called_ns``, ``returned_ns`` (null without a reply),
and ``end``. ``end`` has one of three values. ``told``: the operation also has ``reply``.
``unknown``: the outcome is unknown. ``refused``: the operation's request id had been used for another trade. Statuses
and sides are numbers, as in the messages on the wire.
"""

from dataclasses import asdict

import msgspec

from clients.load.history.operations import NEVER_NS, History, Operation, Untold


def to_json(history: History) -> bytes:
    """Encodes a history as JSON in UTF-8."""
    before = history.before or {}
    document = {
        "stocks": [asdict(stock) | {"sequence": before.get(stock.name, 0)} for stock in history.stocks],
        "operations": [_operation(operation) for operation in history.operations],
    }
    return msgspec.json.encode(document)


def _operation(operation: Operation) -> dict[str, object]:
    request, reply = operation.request, operation.reply
    told = {"end": reply.value} if isinstance(reply, Untold) else {"end": "told", "reply": reply._asdict()}
    return {
        "kind": type(request).__name__.lower(),
        "request": asdict(request),
        "called_ns": operation.called_ns,
        "returned_ns": None if operation.returned_ns == NEVER_NS else operation.returned_ns,
        **told,
    }
