"""A headless Chromium, driven through the DevTools protocol over its debugging pipe.

The browser reads commands from file descriptor 3 and writes replies and events to 4: JSON, a NUL after each
(https://chromedevtools.github.io/devtools-protocol/, and ``devtools_pipe_handler.cc`` for the pipe). A shell sets the
two descriptors up, since a child of subprocess keeps the numbers that its parent has. Nothing waits without a bound.
Left out: features that no test of a page needs, such as a second tab.
"""

import fcntl
import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-breakpad", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)
WAIT_S = 30.0
"""Longest wait for one reply, on a busy machine. Replies take 2 s at most here."""

Message = dict[str, Any]
"""Messages of the browser's protocol on the wire."""


def _pipe() -> tuple[int, int]:
    """A pipe whose ends have numbers from 10 on. So neither end is 3 or 4, which the shell sets up."""
    low = os.pipe()
    read, write = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10) for descriptor in low)
    for descriptor in low:
        os.close(descriptor)
    return read, write


class Chromium:
    """One browser with one tab. Every call goes to the tab's session. For one thread. Close it."""

    def __init__(self, executable: str, profile: Path) -> None:
        """Starts the browser with a new, empty folder. Blocks until the browser answers; raises TimeoutError."""
        self.events: list[Message] = []
        """Events that the browser sent without a request, oldest first. Readers may clear the list."""
        self._received = b""
        self._last_id = 0
        self._session: str | None = None
        (its_read, self._write), (self._read, its_write) = _pipe(), _pipe()
        self._ends = [self._read, self._write]
        redirected = f'exec "$@" 3<&{its_read} 4>&{its_write} {its_read}<&- {its_write}>&-'
        command = ["bash", "-c", redirected, "bash", executable, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            command,
            pass_fds=(its_read, its_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(profile)},
            start_new_session=True,
        )
        os.close(its_read)
        os.close(its_write)
        try:
            tab = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        except BaseException:
            self.close()
            raise

    def call(self, method: str, **parameters: object) -> Message:
        """Sends a command and gives its result. Blocks ``WAIT_S`` at most; TimeoutError, RuntimeError if refused."""
        self._last_id += 1
        command = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + WAIT_S
        while (message := self._next(deadline)).get("id") != self._last_id:
            self.events.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return dict(message["result"])

    def wait_for(self, event: str) -> None:
        """Blocks until an event of this name has come; TimeoutError after ``WAIT_S``."""
        deadline = time.monotonic() + WAIT_S
        while not any(message["method"] == event for message in self.events):
            self.events.append(self._next(deadline))

    def evaluate(self, script: str) -> object:
        """The value of a JavaScript expression in the page, or of its promise. RuntimeError if the expression
        throws."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def close(self) -> None:
        """Ends the browser and all its processes, by force after ``WAIT_S``. May be repeated."""
        while self._ends:  # without its pipe the browser ends
            os.close(self._ends.pop())
        try:
            self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _next(self, deadline: float) -> Message:
        while b"\0" not in self._received:
            with selectors.DefaultSelector() as selector:
                selector.register(self._read, selectors.EVENT_READ)
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"no answer from the browser within {WAIT_S} s")
            received = os.read(self._read, 1 << 20)
            if not received:
                raise RuntimeError("the browser has ended")
            self._received += received
        text, self._received = self._received.split(b"\0", 1)
        return dict(json.loads(text))
