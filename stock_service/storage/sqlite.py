"""The catalog that survives a restart: versions in memory to read, one thread that writes them to a file.

Group commit: the writer takes all changes that wait, applies their steps in order to what would then stand, writes the
outcome in one transaction, and waits for the disk. Then it publishes the new versions, all at once, and lets those who
wait go on. So nobody is told, and no reader sees, what a crash can undo; and a Lookup never waits for the disk.

Where the disk is full, the batch is refused (Overloaded, RESOURCE_EXHAUSTED): nothing of it was done, and the next one
is tried. Any other failure (InternalFault, INTERNAL) leaves open what is on the disk. So the catalog is closed to all
changes until a restart, which reads the file anew. Reading goes on, from the last that was published.

Waiting changes are bounded by the threads that call: each has one.
"""

import logging
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock, Thread

from stock_service.rpc.errors import Fault, InternalFault, Overloaded, Unavailable, UsageError
from stock_service.storage.sqlite_file import Loaded, StoreFile
from stock_service.trading.catalog import Step, Version
from stock_service.trading.model import Stock
from stock_service.trading.once import RETRY_WINDOW, Changed, Once, Remembered, key_of, record_of, reply_of

_log = logging.getLogger(__name__)

Open = Callable[[Path], StoreFile]

CLOSE_S = 5.0
"""How long the last batch may take to reach the disk when the catalog is closed."""


class SqliteCatalog:
    """Stocks in a file of this process's own. Whoever makes it closes it.

    Its thread is the only one to touch the file.
    """

    def __init__(
        self,
        path: Path,
        default: Iterable[Stock],
        given: Iterable[Stock] | None = None,
        *,
        retry_window: int = RETRY_WINDOW,
        open_file: Open = StoreFile.opened,
    ) -> None:
        """Opens the file, and makes it where there is none, of the stocks ``given`` or else of the ``default`` ones.

        Of a file that is there prices and volumes hold. Stocks ``given`` then must name all that it has; those that it
        lacks are added, and their limits apply, but for one that is under its stock's volume. Raises UsageError for a
        file or stocks that cannot be used.
        """
        self._path = path
        self._retry_window = retry_window
        self._versions: dict[str, Version] = {}  # what stands on the disk; its one writer is the thread
        self._remembered = Remembered(retry_window)  # the thread's
        self._sequence = 0  # the thread's
        self._lock = Lock()  # guards what follows
        self._waiting: list[_Change] = []
        self._asleep = False
        self._closing = False
        self._refusal: Fault | None = None  # why there can be no change any more
        self._awake = Lock()  # what the thread sleeps on; released to wake it
        self._awake.acquire()
        self._opened = Lock()  # released when the thread has opened the file, or failed to
        self._opened.acquire()
        failures: list[BaseException] = []  # why it could not be opened

        def opened() -> StoreFile:
            if not path.exists():
                StoreFile.create(path, default if given is None else given)
            return open_file(path)

        self._thread = Thread(target=self._work, args=(opened, given, failures), name="store-writer")
        self._thread.start()
        self._opened.acquire()
        if failures:
            self._thread.join()
            raise failures[0]

    def names(self) -> Iterable[str]:
        return self._versions.keys()

    def read(self, name: str) -> Version | None:
        return self._versions.get(name)

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        change = _Change(name, step, once)
        with self._lock:
            if self._refusal is not None:
                raise _again(self._refusal)
            self._waiting.append(change)
            wake, self._asleep = self._asleep, False
        if wake:
            self._awake.release()
        change.done.acquire()
        if change.error is not None:
            raise change.error
        return change.changed

    def close(self) -> bool:
        """Finishes the changes that wait, refuses later ones with Unavailable, and closes the file; may be repeated.

        Blocks for ``CLOSE_S`` at most; says whether the file was closed by then.
        """
        with self._lock:
            if self._refusal is None:
                self._refusal = Unavailable("the server is stopping")
            self._closing = True
            wake, self._asleep = self._asleep, False
        if wake:
            self._awake.release()
        self._thread.join(CLOSE_S)
        return not self._thread.is_alive()

    # ---- the writer's thread

    def _work(
        self, open_file: Callable[[], StoreFile], given: Iterable[Stock] | None, failures: list[BaseException]
    ) -> None:
        """The thread's life."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        try:
            file = open_file()
            try:
                self._begin(file, given)
            except BaseException:
                file.close()
                raise
        except BaseException as error:
            failures.append(error)
            self._opened.release()
            return
        self._opened.release()
        with file:
            while (batch := self._next()) is not None:
                self._commit(file, batch)

    def _begin(self, file: StoreFile, given: Iterable[Stock] | None) -> None:
        """Loads the file and fits it to the stocks that are given."""
        loaded = file.load()
        for key, record in loaded.records.items():
            self._remembered.keep(key, record)
        self._sequence = loaded.sequence
        self._versions = loaded.versions
        fitted = {} if given is None else self._fitted(loaded, given)
        if fitted:
            file.commit(fitted, {}, self._retry_window)
            self._versions.update(fitted)

    def _fitted(self, loaded: Loaded, given: Iterable[Stock]) -> dict[str, Version]:
        """What is to be written, so that the file has these stocks and limits. Raises UsageError."""
        stocks = {stock.name: stock for stock in given}
        lacking = next((name for name in loaded.versions if name not in stocks), None)
        if lacking is not None:
            raise UsageError("--catalog", None, f"a file with all stocks of {self._path}: {lacking!r} is one")
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

    def _next(self) -> "list[_Change] | None":
        """The changes that wait, once there are some; None where there will be none. Blocks."""
        while True:
            with self._lock:
                if self._waiting:
                    batch, self._waiting = self._waiting, []
                    return batch
                if self._closing:
                    return None
                self._asleep = True
            self._awake.acquire()

    def _commit(self, file: StoreFile, batch: "list[_Change]") -> None:
        """Applies a batch, writes it, publishes it, and lets those go on who wait for it."""
        versions: dict[str, Version] = {}
        records: dict[str, bytes] = {}
        sequence = self._sequence
        try:
            for change in batch:
                sequence = self._apply(change, versions, records, sequence)
            if versions or records:
                file.commit(versions, records, self._retry_window)
        except Overloaded as fault:
            self._end(batch, fault)
            return
        except Exception as error:
            self._fail(error)
            self._end(batch, error if isinstance(error, Fault) else InternalFault(f"the store failed: {error!r}"))
            return
        self._sequence = sequence
        for key, record in records.items():
            self._remembered.keep(key, record)
        self._versions.update(versions)  # at once for every reader: CPython's update runs no Python code for these keys
        self._end(batch)
        try:
            file.tidy()
        except InternalFault as fault:  # all that was acknowledged is in the log
            self._fail(fault)

    def _apply(self, change: "_Change", versions: dict[str, Version], records: dict[str, bytes], sequence: int) -> int:
        """Applies one change to what the batch would leave; gives the number of the last commit then."""
        once = change.once
        try:
            if once is not None:
                key = key_of(once)
                record = records.get(key) or self._remembered.get(key)
                if record is not None:
                    change.changed = reply_of(record, once)
                    return sequence
            version = versions.get(change.name) or self._versions.get(change.name)
            before = None if version is None else version[0]
            stock, status = change.step(before)
            if stock is None or stock is before:
                change.changed = (status, 0 if before is None else before.volume, 0)
            else:
                sequence += 1
                versions[change.name] = (stock, sequence)
                change.changed = (status, stock.volume, sequence)
            if once is not None:
                records[key] = record_of(once, change.changed)
        except Exception as error:  # the step's own: it is its caller's
            change.error = error
        return sequence

    def _fail(self, error: Exception) -> None:
        """Closes the catalog to changes, for good."""
        _log.error("%s; trades and updates are refused until a restart, lookups go on", error)
        with self._lock:
            if self._refusal is None:
                self._refusal = InternalFault(f"the store {self._path} has failed, and takes no change until a restart")
            late, self._waiting = self._waiting, []
            refusal = self._refusal
        self._end(late, refusal)

    def _end(self, batch: "list[_Change]", fault: Fault | None = None) -> None:
        """Lets those go on who wait for these changes, with a fault if there is one."""
        for change in batch:
            if fault is not None:
                change.error = _again(fault)
            change.done.release()


class _Change:
    """A change that waits, and what became of it, which may be read once ``done`` is acquired."""

    __slots__ = ("changed", "done", "error", "name", "once", "step")

    def __init__(self, name: str, step: Step, once: Once | None) -> None:
        self.name = name
        self.step = step
        self.once = once
        self.changed: Changed
        self.error: Exception | None = None
        self.done = Lock()
        self.done.acquire()


def _again(fault: Fault) -> Fault:
    """The same fault as an object of its own: each thread that raises one writes its traceback into it."""
    return type(fault)(fault.detail)
