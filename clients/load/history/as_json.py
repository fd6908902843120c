"""A history as JSON, for other people's checkers.

The JSON is one object with two fields, ``stocks`` and ``operations``. A stock has its first state and the number of its
last commit. An operation has its request, ``called_ns``, ``returned_ns`` (null for a request without a reply), and
``end``. The end is ``told`` with the reply's fields, ``unknown``, or ``refused`` because the id was used for another
trade. Statuses and sides are the numbers of the wire.
"""

from dataclasses import asdict

import msgspec

from clients.load.history.operations import NEVER_NS, History, Operation, Untold


def to_json(history: History) -> bytes:
    """The history as JSON in UTF-8."""
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
