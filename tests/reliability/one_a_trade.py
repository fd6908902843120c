"""The stock service with one transaction for each trade: a control for group commit.

``python -m tests.reliability.one_a_trade serve --store postgres:DSN …`` takes the options of ``stock_service``.
"""

import sys

from stock_service import __main__ as service
from stock_service.storage import postgres


def one(line: postgres._Line[postgres.Request]) -> list[postgres.Request]:
    """The oldest waiting request, in place of all waiting requests."""
    with line._lock:
        if not line._drawn and line._waiting:
            line._drawn.append(line._waiting.pop(0))
        line._asked = bool(line._waiting)
    return line._drawn


if __name__ == "__main__":
    postgres._Line._draw = one  # type: ignore[assignment, method-assign]
    service.main(sys.argv[1:])
