"""Promise: honest on a sick disk. Bits of a store's file and its log are flipped, and both are cut short. The server
then serves the written values, or refuses the file by name. Two damages cannot be seen: a log with a damaged last
commit is served without this commit, and a truncated log is served up to the cut. Full and failed disks are in
``store.py``.
"""

import random
import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from stock_service.rpc.errors import UsageError
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side
from tests.reliability.rows import Row
from tests.stores import STOCKS, catalog_on, crashed, unsynced

DAMAGES, SOME = 3_000, 40

TRADES = 20


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for a second; with ``minutes`` for a minute. Drawn at random: the bit, and the length."""
    rng, tries = random.Random(seed), DAMAGES if minutes else SOME
    with TemporaryDirectory() as name:
        folder = Path(name)
        contents = _written(folder)
        refused = wrong = cut = without_last = 0
        for number in range(tries):
            part = rng.choice(list(contents))
            damaged = _damaged(contents[part], rng)
            found = _served(folder / str(number), contents | {part: damaged})
            shutil.rmtree(folder / str(number))
            lacks = _lacks(part, len(damaged) < len(contents[part]))
            refused += found is None
            wrong += found is not None and not _right(found, lacks)
            cut += found is not None and lacks == TRADES and found[2] < TRADES
            without_last += found is not None and lacks == 1 and found[2] < TRADES
    unseen = f"{without_last:,} logs without their last commit, and {cut:,} that were cut short"
    what = f"{wrong} of {tries:,} were served wrongly, {refused:,} were refused by name; nobody could see {unseen}"
    return [Row("a bit turned over, or a file cut short", "0 served wrongly", what, not wrong)]


def _written(folder: Path) -> dict[str, bytes]:
    """The files of a store with trades, as a crash leaves them: some trades are only in the log."""
    path = folder / "store"
    catalog = catalog_on(path, unsynced)
    try:
        exchange = Exchange(catalog)
        for number in range(TRADES):
            exchange.trade("FishCo", 1, Side.BUY, str(number))
        left = crashed(path, folder / "left")
    finally:
        catalog.close()
    return {part.name: part.read_bytes() for part in left.parent.iterdir()}


def _damaged(content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.2:
        return content[: rng.randrange(len(content))]
    place = rng.choice([at for at, byte in enumerate(content) if byte])
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def _served(folder: Path, contents: dict[str, bytes]) -> tuple[int, int, int, int] | None:
    """The volume and price of each stock that is served; None where the file is refused."""
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    try:
        catalog = SqliteCatalog(folder / "store", STOCKS, open_file=partial(StoreFile.opened, connect=unsynced))
    except UsageError:
        return None
    try:
        exchange = Exchange(catalog)
        first, second = (exchange.lookup(stock.name) for stock in STOCKS)
        return first.volume, first.price_cents, second.volume, second.price_cents
    finally:
        catalog.close()


def _lacks(part: str, is_cut: bool) -> int:
    """Largest number of last trades that may be missing without notice."""
    return 0 if not part.endswith("-wal") else TRADES if is_cut else 1


def _right(found: tuple[int, int, int, int], lacks: int) -> bool:
    """True if the stocks have the written values, except for some of the last trades."""
    first, price, volume, second_price = found
    prices = (first, price, second_price) == (0, STOCKS[0].price_cents, STOCKS[1].price_cents)
    return prices and TRADES - lacks <= volume <= TRADES
