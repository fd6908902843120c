"""Promise: linearizable. Histories over real connections, of every transport and every catalog, are judged.

The server runs in this process, the client in a second process with eight connections. One of three stocks soon reaches
its limit. In every second history the interpreter switches threads as often as it can. Each history is judged by
sequence and by search, and by Porcupine where ``make go-tools`` built it. The judges are tried, too, on planted bugs: a
table says which judge finds which bug.
"""

import operator
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from clients.load.history.as_json import to_json
from clients.load.history.by_sequence import violations
from clients.load.history.operations import History
from clients.load.history.search import unexplained
from clients.load.history.verdict import Verdict, judged
from clients.load.plan.load_plan import Check, ClientKind, LoadPlan
from clients.load.run import checking, fleet
from stock_service.rpc.transports import TRANSPORTS, load
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.trading.catalog import Catalog, MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.model import Stock
from stock_service.trading.service import stock_service
from tests.conformance.running import Kind, Limits, Running
from tests.races.every_order import STOCK, drawn, explained
from tests.races.history import Answering, often_switched, plan, record
from tests.races.interleaving import Handoff
from tests.races.planted import PLANTED
from tests.races.planted_exchanges import PLANTED_EXCHANGES
from tests.reliability.rows import Row

PORCUPINE = Path(__file__).resolve().parents[2] / ".tools" / "bin" / "porcupine"
"""The program that ``make go-tools`` builds from ``tests/interop/porcupine``."""

STOCKS = (Stock("Large", 100, 10**12), Stock("Other", 200, 10**12), Stock("Small", 300, 3000))

MIX = {"lookup": 0.35, "trade": 0.5, "update": 0.15}

CONFLICTS = 0.002
"""Share of the trades with an id that use the id of an earlier trade. Each such trade costs its connection a pause."""

CLIENTS, CONNECTIONS = 1, 8

REQUESTS, HISTORIES = 1_000_000, 300
"""Number of histories, and of requests, for which the promise is made."""

SPARE = 1.05
"""Histories are long enough for this multiple of ``REQUESTS``."""

LEAST_S, MOST_S = 0.3, 1.0
"""Longest duration of a history, in seconds."""

AGREEMENTS = 100_000

PLANTED_TIMES = 3

ACROSS_STOCKS = {"numbers of each stock", "number skipped", "number taken by a refusal"}
"""Planted bugs that no single stock shows. Search and Porcupine look at single stocks."""

ABSENT = "Porcupine is not here: install Go, run make go-tools"

MakeCatalog = Callable[[Sequence[Stock], Path], AbstractContextManager[Catalog]]
"""Makers of catalogs, from the stocks and a folder for files."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A history, and the verdict of our own judges."""

    kind: str
    history: History
    verdict: Verdict


def catalogs() -> dict[str, MakeCatalog]:
    """Every catalog that a server may have, by name."""

    def in_memory(locking: str) -> MakeCatalog:
        return lambda stocks, _: nullcontext(MemoryCatalog(stocks, LOCKINGS[locking]))

    def in_a_file(stocks: Sequence[Stock], folder: Path) -> AbstractContextManager[Catalog]:
        return closing(SqliteCatalog(folder / "stocks.sqlite3", stocks))

    return {**{locking: in_memory(locking) for locking in LOCKINGS}, "sqlite": in_a_file}


def run(transport: str, catalog: str, duration_s: float, seed: int, often: bool) -> Recorded:
    """One history of a new server. Blocks for the duration and about a second."""
    client: ClientKind = "lean" if load(transport).codec(("127.0.0.1", 1)) is not None else "library"
    switching = often_switched() if often else nullcontext()
    with TemporaryDirectory() as folder, switching, catalogs()[catalog](STOCKS, Path(folder)) as made:
        flush = made.flush if isinstance(made, SqliteCatalog) else None
        with Running(Kind(transport, "static-pool"), stock_service(Exchange(made), flush), Limits()) as running:
            asked = LoadPlan(
                transport,
                running.address,
                CLIENTS,
                MIX,
                tuple(stock.name for stock in STOCKS),
                0.0,
                duration_s,
                connections_per_client=CONNECTIONS,
                client=client,
                seed=seed,
                check=Check(f"{seed}", CONFLICTS),
            )
            beginning = checking.begin(asked)
            limits = {stock.name: stock.volume_limit for stock in STOCKS}
            history = checking.ended(asked, beginning, fleet.run(asked), limits)
    kind = f"{transport} {catalog}{' often switched' if often else ''} seed {seed}"
    return Recorded(kind, history, judged(history))


def kinds() -> Iterator[tuple[str, str, bool]]:
    """Endless sequence of transport, catalog, and frequent thread switches or not. Each combination comes equally
    often."""
    while True:
        for often in (False, True):
            for catalog in catalogs():
                for transport in TRANSPORTS:
                    yield transport, catalog, often


# ---- Porcupine


def by_porcupine(histories: Iterable[History]) -> list[str] | None:
    """Porcupine's verdict on each history; None if Porcupine is not built."""
    if not PORCUPINE.exists():
        return None
    with TemporaryDirectory() as folder:
        files = []
        for number, history in enumerate(histories):
            files.append(path := Path(folder) / f"{number}.json")
            path.write_bytes(to_json(history))
        said = subprocess.run([PORCUPINE, *files], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[1] for line in said.splitlines()]


# ---- the promise


def check(minutes: bool, seed: int = 1) -> list[Row]:
    """Blocks for half a minute; with ``minutes`` for about five minutes. Prints each history that is not
    linearizable."""
    histories, duration_s, all_s = HISTORIES if minutes else 2 * len(TRANSPORTS), 0.5, 0.0
    found: Counter[str] = Counter()
    requests = unknown = disagreements = 0
    chosen = kinds() if minutes else _some(seed)
    for number, (transport, catalog, often) in zip(range(histories), chosen, strict=False):
        if minutes and requests:
            duration_s = _duration_s(requests / all_s, requests, histories - number)
        all_s += duration_s
        recorded = run(transport, catalog, duration_s, seed + number, often)
        said = by_porcupine([recorded.history])
        verdict = recorded.verdict
        found[verdict.finding] += 1
        requests += verdict.requests
        unknown += verdict.unknown
        if verdict.finding != "linearizable":
            print(f"{recorded.kind}: {verdict.finding}: {'; '.join(verdict.faults[:2])}", flush=True)
        if said is not None and (said == ["linearizable"]) != (verdict.finding in ("linearizable", "vacuous")):
            disagreements += 1
            print(f"{recorded.kind}: {verdict.finding}, and by Porcupine {said[0]}", flush=True)
    goal, what = f"0 of {histories}", f"of {histories} histories with {requests:,} requests"
    rows = [
        Row(f"histories {fault}", goal, f"{found[fault]} {what}", not found[fault])
        for fault in ("not linearizable", "vacuous", "not decided")
    ]
    if minutes:
        rows.append(Row("requests in them", f"≥ {REQUESTS:,}", f"{requests:,}", requests >= REQUESTS))
    rows.append(Row("requests of unknown outcome", "0", f"{unknown:,}", not unknown))
    return [*rows, _agreed(disagreements, f"{histories} histories")]


def check_judges(minutes: bool, seed: int = 1) -> list[Row]:
    """Tries the judges. Blocks for some seconds; with ``minutes`` for about a minute."""
    caught, histories, disagreements = planted(seed)
    agreed = _agreed(disagreements, f"{histories} histories with planted bugs")
    return [caught, agreed, agreement(seed, AGREEMENTS if minutes else 1000)]


def _agreed(disagreements: int, of: str) -> Row:
    """The row that compares the search with Porcupine, if Porcupine is built."""
    built = PORCUPINE.exists()
    figure = f"{disagreements} of {of}" if built else ABSENT
    return Row(f"disagreements with Porcupine, of {of}", "0", figure, built and not disagreements)


def _duration_s(rate_hz: float, requests: int, histories: int) -> float:
    """The length of each history that is left, to reach ``REQUESTS`` at this rate."""
    return min(MOST_S, max(LEAST_S, (SPARE * REQUESTS - requests) / histories / rate_hz))


def _some(seed: int) -> Iterator[tuple[str, str, bool]]:
    """Gives each transport twice, with frequent thread switches and without, and a random catalog."""
    rng = random.Random(seed)
    for transport in TRANSPORTS:
        for often in (False, True):
            yield transport, rng.choice(list(catalogs())), often


# ---- the judges themselves


def planted(seed: int) -> tuple[Row, int, int]:
    """True if every planted bug is caught every time. Prints the judge that finds it, then the number of histories,
    and the number of those on which the search and Porcupine differ."""
    makes: dict[str, Callable[[Sequence[Stock], Handoff], Answering]] = {**PLANTED_EXCHANGES}
    for name, make in PLANTED.items():
        makes[name] = lambda stocks, handoff, make=make: Exchange(make(stocks, handoff))  # type: ignore[misc]
    rng, caught, differed = random.Random(seed), Counter[str](), 0
    print(f"{'planted bug':42} sequence  search  Porcupine   (of {PLANTED_TIMES} histories)")
    for name, exchange in makes.items():
        histories = []
        for _ in range(PLANTED_TIMES):
            asked = plan(rng, threads=4, rounds=16, conflicts=name in PLANTED_EXCHANGES)
            histories.append(History(asked.stocks, None, record(exchange(asked.stocks, Handoff(0.004)), asked)))
        sequence = sum(bool(violations(each.stocks, each.operations)) for each in histories)
        search = [bool(unexplained(each.stocks, each.operations)) for each in histories]
        said = by_porcupine(histories)
        porcupine = None if said is None else [each == "not linearizable" for each in said]
        differed += 0 if porcupine is None else sum(map(operator.ne, search, porcupine))
        print(f"{name:42} {sequence:8}  {sum(search):6}  {'–' if porcupine is None else sum(porcupine):9}", flush=True)
        caught["sequence"] += sequence == PLANTED_TIMES
        caught["search"] += all(search)
        caught["Porcupine"] += porcupine is not None and all(porcupine)
    by_search = len(makes) - len(ACROSS_STOCKS)
    least = {"sequence": len(makes), "search": by_search, "Porcupine": by_search if PORCUPINE.exists() else 0}
    goal = f"all of {len(makes)} by sequence, and {by_search} by search and by Porcupine, which judge a stock at a time"
    figure = ", ".join(f"{caught[judge]} by {judge}" for judge in least)
    passed = all(caught[judge] >= number for judge, number in least.items())
    row = Row("planted bugs caught every time", goal, figure if PORCUPINE.exists() else f"{figure}: {ABSENT}", passed)
    return row, PLANTED_TIMES * len(makes), differed


def agreement(seed: int, count: int) -> Row:
    """True if the search agrees with the trial of every order, on small histories."""
    rng, agreed = random.Random(seed), 0
    for _ in range(count):
        history = drawn(rng)
        agreed += (not unexplained([STOCK], history)) == explained(history)
    goal = f"{count:,} of {count:,}"
    return Row("small histories judged as by trying every order", goal, f"{agreed:,}", agreed == count)
