"""The catalog in a SQLite file, which survives a restart. Lookups are answered from memory.

Group commit: the changes of a group share one write to the disk. One thread writes at a time. This thread takes all
waiting changes, applies their steps in order, writes the outcome in one transaction, and waits for the disk. Then the
thread publishes all new versions at once, and resumes the waiting changes. So a change that a crash can undo is in no
reply, and no reader sees such a change. A Lookup never waits for the disk.

A waiting change blocks its thread, or waits without a thread if the server supports this (``rpc/waiting.py``). Such a
server calls ``flush`` once it has begun all requests that it has read. So these requests share a commit, even if the
server has few threads. The writing thread is:

- for changes that wait without a thread: the catalog's own thread ``store-writer``, so that no thread of the server
  waits for the disk. If the server has begun only a single request, the thread that ran this request writes, unless it
  is the server's reading thread;
- for changes that came during another write: ``store-writer``;
- for any other change: the change's own thread.

If the disk is full, the catalog refuses the group (Overloaded, RESOURCE_EXHAUSTED): no change of the group was done.
The catalog then tries to write the next group. If the disk has no room to move the log into the file, the log grows.
After any other failure (InternalFault, INTERNAL) the content of the disk is unknown. So the catalog refuses all changes
until a restart, which reads the file again. Lookups continue, from the last published versions.

The number of waiting changes has no limit of its own: the server limits the number of requests under way.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Condition, Lock, Thread

from stock_service.rpc.errors import Fault, InternalFault, Overloaded, Unavailable, UsageError
from stock_service.rpc.waiting import Waiting, here
from stock_service.storage.change import Change, Outcome, again, let_go, refuse
from stock_service.storage.sqlite_file import Loaded, StoreFile
from stock_service.storage.sqlite_place import unusable
from stock_service.trading.catalog import Step, Version
from stock_service.trading.model import Stock
from stock_service.trading.once import RETRY_WINDOW, Changed, Once, Remembered

_log = logging.getLogger(__name__)

Open = Callable[[Path], StoreFile]

GATHER_S = 0.001
"""Longest time, in seconds, for which the writing thread waits for more changes before it writes a small group. The
wait ends earlier if half of the last commit's time is shorter.
"""

FEW = 0.75
"""Smallest ratio of a group's size to the last group's size at which the group is written at once. A smaller group
first waits for more changes. In tests of 0.5, 0.75 and 1 with 4, 16 and 64 traders, 0.75 made the largest groups.
"""

CLOSE_S = 5.0
"""Longest time, in seconds, that ``close``, ``hold`` and ``lend`` wait for the end of a write."""


class SqliteCatalog:
    """Catalog in a file that only this process has open. The code that made the catalog must close it."""

    def __init__(
        self,
        path: Path,
        default: Iterable[Stock],
        given: Iterable[Stock] | None = None,
        *,
        retry_window: int = RETRY_WINDOW,
        open_file: Open = StoreFile.opened,
    ) -> None:
        """Opens the file. Makes a file that does not exist, with the stocks ``given`` or, if None, the ``default``
        stocks.

        An existing file keeps its prices and volumes. If stocks are ``given``, they must include all stocks of the
        file; further stocks are added to the file. The given volume limits apply, except a limit below its stock's
        volume. Raises UsageError for a file or stocks that cannot be used.
        """
        self.place = path
        """Path of the file."""
        self.on_sick: Callable[[], object] = lambda: None
        """Function that the catalog calls when the result of ``sick`` may have changed. Any thread may call the
        function, so the function must not block.
        """
        self._retry_window = retry_window
        self._made = not os.path.exists(path)
        if self._made:  # ``Path.exists`` would raise for a name that no file can have
            StoreFile.create(path, default if given is None else given)
        self._open_file = open_file
        self._file = open_file(path)  # only the writing thread uses the file, _remembered and _sequence
        try:
            loaded = self._load()
            fitted = {} if given is None else self._fitted(loaded, given)
            if fitted:
                self._file.commit(fitted, {}, retry_window)
                self._versions.update(fitted)
        except Fault as fault:
            self._file.close()
            raise unusable(path, f"a disk that takes the stocks of --catalog ({fault})") from fault
        except BaseException:
            self._file.close()
            raise
        self._lock = Lock()  # guards the fields below
        self._waiting: list[Change] = []
        self._writing = False  # True: a thread writes, or is about to write
        self._held = False  # True: no thread may begin to write (``hold``)
        self._refusal: Fault | None = None  # fault of every later change
        self._free = Condition(self._lock)  # notified when the writing ends
        self._last_size = 0  # number of changes of the last group
        self._last_s = 0.0  # time of the last group's commit
        self._wanted = 0  # number of changes for which the writing thread waits; 0: it does not wait
        self._come = Condition(self._lock)  # notified when _wanted changes wait
        self._asked: SimpleQueue[bool] = SimpleQueue()  # for the catalog's own thread: True to write, False to end
        self._writer = Thread(target=self._write_when_asked, name="store-writer")
        try:
            self._writer.start()
        except RuntimeError as error:
            self._file.close(remove=self._made)
            raise unusable(path, f"a system that gives it a thread ({error})") from error

    def names(self) -> Iterable[str]:
        return self._versions.keys()

    def read(self, name: str) -> Version | None:
        return self._versions.get(name)

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        wait = here.wait
        if wait is None:
            done = Lock()
            done.acquire()
            change = Change(name, step, once, done.release)
            if self._add(change, writes=True):
                self._write()
            done.acquire()
        elif wait.on is None:
            change = wait.on = Change(name, step, once, partial(wait.go_on, wait))
            self._add(change)
            raise Waiting
        else:
            assert isinstance(wait.on, Change)
            change = wait.on
        if change.error is not None:
            raise change.error
        return change.changed

    def sick(self) -> bool:
        """Returns True if the file has failed, so that the catalog refuses changes until a restart."""
        return isinstance(self._refusal, InternalFault)

    def flush(self, here: bool) -> None:
        """Writes the changes that wait without a thread. If ``here`` is True, the calling thread writes, and blocks.
        Otherwise the catalog's own thread writes.
        """
        with self._lock:
            if (
                self._writing or self._held or not self._waiting
            ):  # the end of the write, or of ``hold``, will write them
                return
            self._writing = True
        if here:
            self._write()
        else:
            self._asked.put(True)

    def close(self, served: bool = True) -> bool:
        """Finishes waiting changes, refuses later changes with Unavailable, and closes the file. May be called again.

        If ``served`` is False, removes a file that this catalog has made and never changed. Blocks for ``CLOSE_S`` at
        most. Returns True if the file is closed at the end.
        """
        with self._lock:
            if self._refusal is None:
                self._refusal = Unavailable("the server is stopping")
        self.flush(here=False)
        with self._lock:
            if not self._free.wait_for(lambda: not self._writing and not self._waiting, CLOSE_S):
                return False
        self._asked.put(False)
        if (misplaced := self._misplaced()) and not self.sick():
            self._fail(InternalFault(misplaced))
        self._writer.join()
        self._file.close(remove=self._made and not served and not self._sequence and not len(self._remembered))
        return True

    # ---- hand-over to another process: the methods of listener_handover.Store
    def hold(self) -> bool:
        """Makes changes wait until ``go_on`` is called. Blocks until no write is under way, for ``CLOSE_S`` at most.
        Returns False if a write is still under way.
        """
        with self._lock:
            self._held = True
            return self._free.wait_for(lambda: not self._writing, CLOSE_S)

    def go_on(self) -> None:
        """Ends ``hold``: the catalog's own thread writes the waiting changes, and later changes are written at once."""
        with self._lock:
            self._held = False
        self.flush(here=False)

    def lend(self) -> bool:
        """Makes changes wait, and closes the file, so that another process can open it. If a write takes over
        ``CLOSE_S``, keeps the file open, and returns False.
        """
        if not self.hold():
            self.go_on()
            return False
        self._file.close()
        return True

    def take_back(self) -> None:
        """Ends ``lend``: opens the file again, reads the other process's changes, and writes the waiting changes. If
        the file cannot be used, the catalog refuses all changes until a restart.
        """
        if self._refusal is not None:  # the catalog has failed, or is being closed, and writes no more
            self.give_away()
            return
        try:
            self._file = self._open_file(self.place)
            self._load()
        except (UsageError, Fault, OSError, sqlite3.Error) as error:
            self._fail(error)
        self.go_on()

    def give_away(self) -> None:
        """Refuses waiting and later changes, because the next server's process now has the file (hand-over)."""
        self._refuse_all(Overloaded("the next server has the store: nothing was done"))

    def _load(self) -> Loaded:
        """Reads and publishes the content of the file. Raises UsageError for a damaged file."""
        loaded = self._file.load()
        self._remembered = Remembered(self._retry_window)
        for key, record in loaded.records.items():
            self._remembered.keep(key, record)
        self._sequence = loaded.sequence
        self._versions = loaded.versions  # equal to the file; any thread may read it
        return loaded

    def _fitted(self, loaded: Loaded, given: Iterable[Stock]) -> dict[str, Version]:
        """Returns the versions, by name, that must be written to give the file the given stocks and limits. Raises
        UsageError if ``given`` lacks a stock of the file.
        """
        stocks = {stock.name: stock for stock in given}
        lacking = next((name for name in loaded.versions if name not in stocks), None)
        if lacking is not None:
            raise UsageError("--catalog", None, f"a file with all stocks of {self.place}: {lacking!r} is one")
        fitted: dict[str, Version] = {}
        for name, stock in stocks.items():
            stored, sequence = loaded.versions.get(name, (stock, 0))
            if stock.volume_limit < stored.volume:
                _log.warning(
                    "%s: its volume is %d, so that its limit stays %d", name, stored.volume, stored.volume_limit
                )
            elif name not in loaded.versions or stock.volume_limit != stored.volume_limit:
                fitted[name] = (Stock(name, stored.price_cents, stock.volume_limit, stored.volume), sequence)
        return fitted

    # ---- the choice of the writing thread

    def _add(self, change: Change, writes: bool = False) -> bool:
        """Adds a change to the waiting changes. If ``writes`` is True, and no other thread writes, returns True: then
        the caller must call ``_write``.
        """
        with self._lock:
            if self._refusal is not None:
                raise again(self._refusal)
            self._waiting.append(change)
            if len(self._waiting) == self._wanted:
                self._come.notify()
            begins = writes and not self._writing and not self._held
            self._writing = self._writing or begins
            return begins

    def _gather(self) -> list[Change]:
        """Takes all waiting changes as the group to write. If fewer changes wait than ``FEW`` times the size of the
        last group, first waits for more changes.

        Clients that got their replies together send their next requests shortly after each other. Without the wait, the
        first of these requests would have its own commit, and all other requests would wait for this commit.
        """
        with self._lock:
            if len(self._waiting) < self._last_size * FEW:
                self._wanted = self._last_size
                self._come.wait_for(lambda: len(self._waiting) >= self._wanted, min(GATHER_S, self._last_s / 2))
                self._wanted = 0
            group, self._waiting = self._waiting, []
        self._last_size = len(group)
        return group

    def _write_when_asked(self) -> None:
        """Main function of the thread ``store-writer``: writes a group whenever another thread asks for a write."""
        while self._asked.get():
            self._write()

    def _write(self) -> None:
        """Commits a group, asks ``store-writer`` to write the next group, and resumes the requests of the committed
        group.
        """
        group = self._gather()
        began_s = time.perf_counter()
        self._commit(group)
        self._last_s = time.perf_counter() - began_s
        untidy = self._file.untidy()
        if untidy:
            let_go(group)
            self._tidy()
        with self._lock:
            self._writing = bool(self._waiting) and not self._held
            if self._writing:
                self._asked.put(True)
            else:
                self._free.notify_all()
        if not untidy:
            let_go(group)

    # ---- the writing thread

    def _commit(self, group: list[Change]) -> None:
        """Applies, writes and publishes a group of changes. After a failure, sets the error of each change."""
        outcome = Outcome(self._versions, self._remembered, self._sequence)
        try:
            for change in group:
                outcome.apply(change)
            if outcome.versions or outcome.records:
                self._file.commit(outcome.versions, outcome.records, self._retry_window)
        except Overloaded as fault:
            refuse(group, fault)
            return
        except Exception as error:
            self._fail(error)
            refuse(group, error if isinstance(error, Fault) else InternalFault(f"the store failed: {error!r}"))
            return
        self._sequence = outcome.sequence
        for key, record in outcome.records.items():
            self._remembered.keep(key, record)
        # Atomic for every reader, since CPython's ``update`` runs no Python code for these keys.
        self._versions.update(outcome.versions)

    def _tidy(self) -> None:
        """Moves the log into the file. After a failure other than a full disk, the catalog refuses all changes."""
        try:
            self._file.checkpoint()
        except Overloaded as fault:  # no loss: all acknowledged changes are in the log
            _log.warning("%s; it grows until there is room", fault)
        except InternalFault as fault:
            self._fail(fault)

    def _misplaced(self) -> str:
        """Returns a text if the file was moved, deleted or replaced while this process had it open; otherwise an empty
        text. The text is also empty while ``hold`` makes changes wait.
        """
        return "" if self._held else self._file.misplaced()

    def _fail(self, error: Exception) -> None:
        """Makes the catalog refuse all changes until a restart, because of ``error``. Logs the error."""
        _log.error("%s; trades and updates are refused until a restart, lookups go on", error)
        failed = f"the store {self.place} has failed, and takes no change until a restart"
        self._refuse_all(InternalFault(self._misplaced() or failed))

    def _refuse_all(self, fault: Fault) -> None:
        """Refuses waiting and later changes with the fault. If the catalog already refuses changes with an earlier
        fault, the earlier fault stays, unless the new fault is the first InternalFault.
        """
        with self._lock:
            if self._refusal is None or (isinstance(fault, InternalFault) and not self.sick()):
                self._refusal = fault
            refusal = self._refusal
            late, self._waiting = self._waiting, []
        self.on_sick()
        refuse(late, refusal)
        let_go(late)
