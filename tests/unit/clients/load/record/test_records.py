"""Records of the hot loops."""

from clients.load.plan.outcomes import fault_outcome
from clients.load.record.records import Records
from stock_service.rpc.errors import Unavailable
from stock_service.trading.model import Status


def test_clearing_forgets_all_but_what_was_begun() -> None:
    """Clearing keeps the count of begun requests, and the same arrays, since the hot loops hold on to them."""
    records = Records()
    sent = records.sent
    records.started = 2
    for due_ns in (1, 2):
        records.note(due_ns + 1, due_ns + 2, int(Status.OK), due_ns)
    records.note_first()
    records.note_connect(1, 5)
    assert (list(records.firsts), list(records.connect_ns), list(records.due)) == ([1], [4], [1, 2])
    records.note_unconnected(Unavailable("gone"))
    assert records.unconnected == {fault_outcome(Unavailable("")): 1}
    records.clear()
    assert not records.unconnected
    assert records.started == 2
    assert records.sent is sent
    columns = (records.due, records.sent, records.done, records.outcomes, records.firsts)
    assert [len(column) for column in (*columns, records.connected_at, records.connect_ns)] == [0] * 7
