"""The catalog in a PostgreSQL database, which several replicas share. A replica is a server process. A replica's
catalog has two sessions with the primary (the database server that accepts writes). Each session has its own thread.

Group commit: the thread ``store-writer`` waits for this replica's turn (the lock on the row of ``state``). In its turn
the thread takes all waiting changes, applies their steps, and commits the changes in one transaction
(``postgres_session.py``). Then the thread wakes the waiting threads, and resumes the waiting requests. So with more
replicas, each replica has fewer turns and larger groups. A change is acknowledged only when no crash can undo it.

Every Lookup asks the primary, since another replica may just have changed the stock. The thread ``store-reader``
answers all waiting Lookups with one SELECT. The SELECT begins after the Lookups came, so it sees all commits that were
acknowledged before the Lookups.

After the loss of a session, its thread opens a new session. If the lost session had not begun the commit of its group,
the group's changes had no effect, and are done in the new session. If the lost session had begun the commit, the
outcome is unknown. Then each change with a request id is done again in the new session, and finds its first reply if
the commit was done. Each change without an id is refused (Unavailable, unknown effect). While no primary can be
reached, changes are refused (Unavailable, no effect), except changes with an unknown outcome, which wait. If PostgreSQL
reports an error, and the session survives, the group is refused (Overloaded, no effect).
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from functools import partial
from threading import Condition, Lock, Thread
from typing import Generic, TypeVar

import psycopg

from stock_service.rpc.errors import Fault, InternalFault, Overloaded, Unavailable, UsageError
from stock_service.rpc.waiting import Waiting, here
from stock_service.storage.change import Change, Outcome, Reading, let_go, refuse
from stock_service.storage.postgres_session import Session, said, shown, unusable
from stock_service.trading.catalog import Step, Version
from stock_service.trading.model import Stock
from stock_service.trading.once import RETRY_WINDOW, Changed, Once

_log = logging.getLogger(__name__)

RETRY_S = 0.2
"""Time in seconds between two tries of a replica to reach a primary."""

CLOSE_S = 5.0
"""Longest time, in seconds, that ``close`` waits for the last group of changes; the same for the last Lookups."""

Request = TypeVar("Request", Change, Reading)


class PostgresCatalog:
    """Catalog in a PostgreSQL database, shared with other replicas. The code that made the catalog must close it."""

    def __init__(self, dsn: str, given: Iterable[Stock] | None = None, retry_window: int = RETRY_WINDOW) -> None:
        """Opens the store in the database ``dsn``. If stocks are ``given``, their names and volume limits must be equal
        to those of the store. All replicas must have the same ``retry_window``.

        Raises UsageError for a PostgreSQL server, a store or stocks that cannot be used.
        """
        self.place = shown(dsn)
        """Text that names the database, without the password."""
        self.on_sick: Callable[[], object] = lambda: None
        """Function that the catalog calls when the result of ``sick`` may have changed. Any thread may call the
        function, so the function must not block.
        """
        self._dsn, self._window = dsn, retry_window
        self._known: dict[str, Version] = {}  # last versions that were read; only store-reader uses the values
        try:
            with closing(Session.opened(dsn, retry_window)) as session:
                self._known = session.all_stocks()
            self._check(given)
            self._changes = _Line[Change]("store-writer", self.place, self._for_changes, self._commit, self._tell)
            self._readings = _Line[Reading]("store-reader", self.place, self._opened, self._read, self._tell)
        except psycopg.Error as error:
            raise unusable(dsn, f"a primary that can be reached ({said(error)})") from error

    def names(self) -> Iterable[str]:
        return self._known.keys()

    def read(self, name: str) -> Version | None:
        if name not in self._known:
            return None
        return self._readings.done(partial(Reading, name)).version

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        return self._changes.done(partial(Change, name, step, once)).changed

    def sick(self) -> bool:
        """Returns True if no primary can be reached, so that changes and Lookups fail."""
        return self._changes.away or self._readings.away

    def flush(self, here: bool) -> None:
        """Wakes the catalog's own threads, which then do all waiting changes and Lookups. Never blocks. Ignores
        ``here``.
        """
        self._changes.flush()
        self._readings.flush()

    def close(self, served: bool = True) -> bool:
        """Finishes waiting requests, refuses later requests with Unavailable, and closes the sessions. May be called
        again.

        Blocks for ``CLOSE_S`` for each session at most. Returns True if all requests are finished then.
        """
        self._changes.stop()
        self._readings.stop()
        ended = self._changes.stopped(CLOSE_S)
        return self._readings.stopped(CLOSE_S) and ended

    def _tell(self) -> None:
        self.on_sick()

    def _check(self, given: Iterable[Stock] | None) -> None:
        """Raises UsageError if the given stocks or limits differ from the stocks or limits of the store."""
        stored = {(name, stock.volume_limit) for name, (stock, _) in self._known.items()}
        asked = stored if given is None else {(stock.name, stock.volume_limit) for stock in given}
        if stored != asked:
            name, limit = min(stored ^ asked)
            where = "the store" if (name, limit) in stored else "the file"
            allowed = f"a file with the stocks and limits of the store: {where} alone has {name!r} with {limit}"
            raise UsageError("--catalog", None, allowed)

    def _opened(self) -> Session:
        """Opens a new session, and checks that the store has the same stocks as when the catalog was opened. Raises
        psycopg.Error, UsageError.
        """
        session = Session.opened(self._dsn, self._window)
        with ExitStack() as failed:
            failed.callback(session.close)
            if session.all_stocks().keys() != self._known.keys():
                raise unusable(self._dsn, "the store of before; this one has other stocks")
            failed.pop_all()
        return session

    def _for_changes(self) -> Session:
        """Opens a new session for changes, and reads all request ids. Raises psycopg.Error, UsageError."""
        session = self._opened()
        with ExitStack() as failed:
            failed.callback(session.close)
            session.catch_up()
            failed.pop_all()
        return session

    def _commit(self, session: Session, draw: Callable[[], list[Change]]) -> None:
        """Waits for this replica's turn, then calls ``draw``, and commits all changes that ``draw`` returns. Raises
        psycopg.Error.
        """
        session.lock()
        changes = draw()
        standing = session.stocks(change.name for change in changes if change.name in self._known)
        outcome = Outcome(standing, session.remembered, session.sequence)
        for change in changes:
            change.error = None  # an earlier try, in a lost session, may have set an error
            outcome.apply(change)
        session.commit(outcome.versions, outcome.records, outcome.sequence)

    def _read(self, session: Session, draw: Callable[[], list[Reading]]) -> None:
        """Answers all Lookups that ``draw`` returns, by one SELECT. If a stock has not changed, its Lookups get the
        same version object as before. Raises psycopg.Error.
        """
        readings = draw()
        found = session.read(reading.name for reading in readings)
        for name, version in found.items():
            if self._known[name] != version:
                self._known[name] = version
        for reading in readings:
            reading.version = self._known[reading.name]


class _Line(Generic[Request]):
    """Queue of requests (changes or Lookups), and the thread that does these requests in one database session."""

    def __init__(
        self,
        name: str,
        where: str,
        connect: Callable[[], Session],
        work: Callable[[Session, Callable[[], list[Request]]], None],
        changed: Callable[[], object],
    ) -> None:
        """``name`` is the thread's name, and ``where`` names the database. ``connect`` opens a session. ``work`` does
        the requests: its arguments are a session, and a function that takes the waiting requests from the queue.
        ``changed`` is called when ``away`` has changed.
        """
        self._where = where
        self._connect = connect
        self._work: Callable[[Session, Callable[[], list[Request]]], None] = work
        self._changed: Callable[[], object] = changed
        self._session: Session | None = None  # only the thread uses the fields from _session to _lost
        self._drawn: list[Request] = []  # requests taken from _waiting, and not done yet
        self._in_doubt = False  # True: the drawn requests may have been committed
        self._lost = False  # True: the last session was lost, and no later session has done a request
        self._lock = Lock()  # guards the fields below
        self._come = Condition(self._lock)  # notified when the thread has work
        self._waiting: list[Request] = []
        self._asked = False  # True: ``flush`` or ``stop`` was called
        self._stopping = False
        self.away = False
        """True if no primary can be reached. Any thread may read this field."""
        self._thread = Thread(target=self._live, name=name)
        self._thread.start()

    def done(self, make: Callable[[Callable[[], object]], Request]) -> Request:
        """Queues a request, and waits until the request is done. Returns the request, or raises its error.

        ``make`` makes the request. The argument of ``make`` is a function to call when the request is done; this
        function wakes the waiting thread, or resumes the request. Raises Waiting if the request waits without a thread.
        """
        wait = here.wait
        if wait is None:
            over = Lock()
            over.acquire()
            request = make(over.release)
            self._add(request)
            self.flush()
            over.acquire()
        elif wait.on is None:
            wait.on = request = make(partial(wait.go_on, wait))
            self._add(request)
            raise Waiting
        else:
            assert isinstance(wait.on, Change | Reading)
            request = wait.on  # type: ignore[assignment]  # a handler waits only once, so ``on`` is from this queue
        if request.error is not None:
            raise request.error
        return request

    def flush(self) -> None:
        """Wakes the queue's thread to do the waiting requests. Never blocks. Thread-safe."""
        with self._lock:
            if self._waiting and not self._asked:
                self._asked = True
                self._come.notify()

    def stop(self) -> None:
        """Refuses later requests, and makes the thread end after the waiting requests. Never blocks."""
        with self._lock:
            self._stopping = self._asked = True
            self._come.notify()

    def stopped(self, timeout_s: float) -> bool:
        """Waits for the end of the thread, after ``stop``. Returns True if the thread ended within ``timeout_s``."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _add(self, request: Request) -> None:
        with self._lock:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if self.away:
                raise self._is_away()
            self._waiting.append(request)

    # ---- the thread

    def _live(self) -> None:
        """Main function of the thread: opens sessions, and does the requests."""
        while self._goes_on():
            try:
                if self._session is None:
                    self._session = self._connect()
                self._set_back()
                if self._drawn or self._waiting:
                    self._work(self._session, self._draw)
            except Exception as error:  # an error of PostgreSQL, or a bug
                self._fail(error)
            else:
                self._in_doubt = self._lost = False
                self._end(self._drawn)
        if self._session is not None:
            self._session.close()
        self.away = False  # the catalog is closed, and so not sick

    def _goes_on(self) -> bool:
        """Waits for requests, or for the time of the next try. Returns False when the thread must end."""
        with self._lock:
            if self.away:
                self._come.wait_for(lambda: self._stopping, RETRY_S)
            elif self._session is not None and not self._drawn:
                self._come.wait_for(lambda: self._asked or self._stopping)
            self._asked = False
            return not self._stopping or bool(self._waiting or self._drawn)

    def _draw(self) -> list[Request]:
        """Moves all waiting requests to the *drawn* requests, which the thread does next. Returns all drawn requests.
        Requests that were drawn in a lost session come first.
        """
        with self._lock:
            self._drawn += self._waiting
            self._waiting = []
        return self._drawn

    def _end(self, requests: list[Request], fault: Fault | None = None) -> None:
        """Removes ``requests`` from the drawn requests, and wakes or resumes each of them. A ``fault`` becomes the
        error of each request.
        """
        left = {id(request) for request in self._drawn} - {id(request) for request in requests}
        self._drawn = [request for request in self._drawn if id(request) in left]
        if fault is not None:
            refuse(requests, fault)
        let_go(requests)

    def _fail(self, error: Exception) -> None:
        """Handles an error of the session. If the session survives, refuses all waiting and drawn requests. If the
        session is lost while its commit is in doubt, refuses the drawn changes that have no request id. Keeps all other
        drawn requests of a lost session for the next session. Calls ``_set_away`` if no primary can be reached.
        """
        session = self._session
        if session is not None and session.undone():
            fault: Fault = Overloaded(f"{self._where} refused this ({said(error)}): nothing was done")
            if not isinstance(error, psycopg.Error):
                _log.error("%s failed", self._thread.name, exc_info=error)
                fault = InternalFault(f"the store failed ({error!r}): nothing was done")
            self._end(self._draw(), self._unknown() if self._in_doubt else fault)
            self._in_doubt = False
            return
        if session is not None:
            session.close()
            self._session = None
            if session.in_doubt:
                self._in_doubt = True
                self._end([each for each in self._drawn if isinstance(each, Change) and not each.once], self._unknown())
        if session is None or self._lost:
            self._set_away(error)
        self._lost = True

    def _set_away(self, error: Exception) -> None:
        """Notes that no primary can be reached. Refuses all waiting and drawn requests. Drawn requests whose commit is
        in doubt are refused only if the queue is stopping.
        """
        with self._lock:
            changed = not self.away
            if changed:
                _log.warning("%s: %s is away (%s)", self._thread.name, self._where, said(error))
            self.away = True
            late, self._waiting = self._waiting, []
            stopping = self._stopping
        if changed:
            self._changed()
        refuse(late, self._is_away())
        let_go(late)
        if not self._in_doubt or stopping:
            self._end(self._drawn, self._unknown() if self._in_doubt else self._is_away())

    def _set_back(self) -> None:
        """Notes that a primary is reached, and so accepts requests again."""
        if self.away:
            _log.warning("%s: %s is back", self._thread.name, self._where)
            self.away = False
            self._changed()

    def _is_away(self) -> Fault:
        return Unavailable(f"the store, {self._where}, is away: nothing was done")

    def _unknown(self) -> Fault:
        return Unavailable(f"the store, {self._where}, was lost at the commit: the outcome is unknown")
