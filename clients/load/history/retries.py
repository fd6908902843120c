"""Merging of all uses of a request id into one operation. A checker of histories then needs no rule for ids.

The catalog does a trade with an id once, and gives every later use of the id the first reply. If a client uses the id
for a second, different trade, the catalog refuses the second trade. The refusal also shows that the first trade has
taken effect. So one operation stands for all uses of the id. The trade took effect after a client sent the first use,
and before the first reply that shows the effect.

Two cases are left out. First, an id that the catalog has forgotten: a history must use fewer ids than a catalog
remembers. Second, several different trades with one id and without replies: at most one of these trades took effect,
but this module allows that each has taken effect.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from clients.load.history.operations import NEVER_NS, Operation, Trade, Untold


def one_for_each_id(operations: Iterable[Operation]) -> tuple[list[Operation], list[str]]:
    """Replaces all uses of a request id by one operation. Gives the operations, and the faults of the replies.

    An operation in the result may have the reply ``Untold.UNKNOWN`` although it has a moment of return. Such an
    operation has taken effect, but its reply is unknown.
    """
    by_id: dict[str, list[Operation]] = {}
    asked: list[Operation] = []
    found: list[str] = []
    for operation in operations:
        request = operation.request
        if isinstance(request, Trade) and request.request_id:
            by_id.setdefault(request.request_id, []).append(operation)
        elif operation.reply is Untold.REFUSED:
            found.append(f"{request}: refused for a request_id that it has not")
        else:
            asked.append(operation)
    for uses in by_id.values():
        asked += _one(uses, found)
    return asked, found


def _one(uses: Sequence[Operation], found: list[str]) -> list[Operation]:
    """Operations that stand for all uses of one id: one for each trade that took effect or may have taken effect.
    ``found`` receives the faults."""
    trades: dict[Trade, list[Operation]] = {}
    for use in uses:
        assert isinstance(use.request, Trade)
        trades.setdefault(use.request, []).append(use)
    told = {trade: [use for use in its if not isinstance(use.reply, Untold)] for trade, its in trades.items()}
    refused = [use for use in uses if use.reply is Untold.REFUSED]
    done = [trade for trade in trades if told[trade]]
    possible = done or [trade for trade in trades if all(use.reply is Untold.UNKNOWN for use in trades[trade])]
    if len({use.reply for trade in done for use in told[trade]}) > 1 or len(done) > 1:
        replies = " and ".join(str(use.reply) for trade in done for use in told[trade])
        return _wrong(found, f"{uses[0].request}: one id, and both {replies}")
    if any(use.request in done for use in refused) or (refused and not possible):
        return _wrong(found, f"{refused[0].request}: refused for another use of its id, and there is none")
    certain = refused if len(possible) == 1 else []  # the trade's effect came before the refusals
    ones = [_merged(trade, trades[trade], [*told[trade], *certain], found) for trade in possible]
    return [one for one in ones if one is not None]


def _merged(trade: Trade, uses: Sequence[Operation], told: Sequence[Operation], found: list[str]) -> Operation | None:
    """One operation for all uses of an id for one trade. ``told``: the uses whose replies show that the trade took
    effect. ``told`` may also have the refused uses of the id for another trade."""
    replies = [use.reply for use in uses if not isinstance(use.reply, Untold)]
    one = Operation(
        replace(trade, request_id=""),
        replies[0] if replies else Untold.UNKNOWN,
        called_ns=min(use.called_ns for use in uses),
        returned_ns=min((use.returned_ns for use in told), default=NEVER_NS),
    )
    if one.called_ns <= one.returned_ns:
        return one
    found.append(f"{trade}: a reply showed its effect before the trade was sent")
    return None


def _wrong(found: list[str], what: str) -> list[Operation]:
    found.append(what)
    return []
