"""Memory of what a catalog remembers; ``tests/conformance/catalogs.py`` has the checks of every catalog."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]

FILL = """
import psutil
from stock_service.trading.model import Status
from stock_service.trading.once import RETRY_WINDOW, Once, Remembered, key_of, record_of

remembered = Remembered(RETRY_WINDOW)
before = psutil.Process().memory_info().rss
for number in range(RETRY_WINDOW * 5 // 2):
    once = Once(f"{number:064d}", "1 1000000 GameStart of a long name")
    remembered.keep(key_of(once), record_of(once, (Status.OK, 10**9 + number, number)))
assert len(remembered) == RETRY_WINDOW
print(psutil.Process().memory_info().rss - before)
"""


@pytest.mark.slow
def test_what_is_remembered_takes_little_memory() -> None:
    """100,000 ids of 64 characters take at most 25 MiB of a process, with the memory of forgotten ids."""
    done = subprocess.run([sys.executable, "-c", FILL], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 25 * 2**20
