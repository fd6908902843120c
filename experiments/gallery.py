"""Every picture of a folder of results, as the report and the notebooks show it: what is drawn from which runs.

Pictures over rows are ``figures``'; those that need what a row has no room for (distributions), or what was concluded
(ratios), are put together here from the runs' records and the study's comparisons. Nothing here measures, and nothing
is concluded; what may not be is asked of the gates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments import figures, stats
from experiments.evidence import arm_evidence
from experiments.figures import distributions, heat_map, offered_load, ratios, stages
from experiments.figures.series import NONE_REFUSED, Refused
from experiments.figures.style import house_style, look, save, svg_text
from experiments.gates import refusals
from experiments.gates.refusal import Conclusion, Refusal, forbidding
from experiments.observation import Observation
from experiments.percentiles import effective_count
from experiments.results import ALL, RESULTS_FILE, Row, load_whole_runs
from experiments.run_records import RUNS_FILE, RunRecord, counting, load_records
from experiments.stats import Estimate
from experiments.studies.stock.comparisons import judge, refused_rows, runs_refused
from experiments.studies.stock.declared import clients_text, families

FOLDER = "figures"
"""Where the files are, inside the results folder."""

STOCK = "stock"


@dataclass(frozen=True, slots=True)
class Results:
    """What pictures are made from."""

    rows: tuple[Row, ...]
    records: tuple[RunRecord, ...]
    """Of the attempts that count; none where the folder keeps none: then what needs them is not drawn."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, not drawn yet, with what stands for it where it cannot be seen."""

    name: str
    """Of its files; that of the part that it shows, where it is the only one."""
    part: str
    """The part of the study that it belongs to; ``answers`` for the comparisons."""
    title: str
    paint: Callable[[], Figure]
    alternative: str


def read(folder: Path) -> Results:
    """The results of a folder. UsageError."""
    records = counting(load_records(folder)) if (folder / RUNS_FILE).exists() else []
    return Results(tuple(load_whole_runs(folder)), tuple(records))


def pictures(results: Results) -> Iterator[Picture]:
    """Every picture for which there are runs, in the order in which they are shown."""
    yield from _ratios(results)
    refused = refused_rows(results.rows) if _is_stock(results.rows) else NONE_REFUSED
    for drawing in figures.drawings(results.rows):
        alternative = figures.alternative(drawing.part, results.rows, refused)
        paint = _painter(drawing.part, results.rows, refused)
        yield Picture(drawing.part, drawing.part, drawing.title, paint, alternative)
        if drawing.part == "pool_by_clients":
            yield _heat_map(results.rows, refused)
    yield from _stages(results.rows)
    yield from _offered(results.rows)
    yield from _distributions(results, refused)


def draw(folder: Path) -> list[Path]:
    """Writes every picture of a folder of results, SVG and PNG; their paths. Takes seconds. UsageError, OSError."""
    paths: list[Path] = []
    for picture in pictures(read(folder)):
        with house_style():
            paths.extend(save(picture.paint(), folder / FOLDER, picture.name))
    return paths


def svg_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Every picture's name and its SVG, drawn anew."""
    for picture in pictures(read(folder)):
        with house_style():
            yield picture.name, svg_text(picture.paint())


def draw_if_older(folder: Path) -> None:
    """Draws what is missing, or older than the results."""
    measured_at = (folder / RESULTS_FILE).stat().st_mtime
    files = [folder / FOLDER / f"{picture.name}.svg" for picture in pictures(read(folder))]
    if any(not file.exists() or file.stat().st_mtime < measured_at for file in files):
        draw(folder)


def _is_stock(rows: Sequence[Row]) -> bool:
    """Whether gates are asked: other studies compare with goals."""
    return bool(rows) and rows[0].study == STOCK


def _painter(part: str, rows: Sequence[Row], refused: Refused) -> Callable[[], Figure]:
    return lambda: figures.paint(part, rows, refused)


def _ratios(results: Results) -> Iterator[Picture]:
    """The declared family of the answers, as it was judged."""
    if not _is_stock(results.rows):
        return
    judged = judge(results.rows)
    found = [judged[contrast.name] for contrast in families(results.rows)["answers"] if contrast.name in judged]
    shown = [
        ratios.Ratio(
            one.contrast.text,
            one.result.ratio,
            one.result.verdict,
            one.result.blocks_needed,
            tuple(sorted({refusal.gate for refusal in one.refused})),
        )
        for one in found
    ]
    if shown:
        title = "The four answers: ratios of mean latencies"
        speech = ratios.text_alternative(title, shown)
        yield Picture("answers", "answers", title, lambda: ratios.draw_ratios(title, shown), speech)


def _heat_map(rows: Sequence[Row], refused: Refused) -> Picture:
    """The median of each pool with each number of clients."""
    own = [row for row in rows if row.part == "pool_by_clients" and row.request != ALL]
    cells = []
    for workers, clients in sorted({(row.workers, row.clients) for row in own}):
        found = [row for row in own if (row.workers, row.clients) == (workers, clients)]
        medians = [row.response_us_p50 for row in found if row.response_us_p50 is not None]
        if medians:
            limited = any(row.load_limited for row in found)
            doubted = any((row.run_id, row.request) in refused for row in found)
            cells.append(heat_map.Cell(workers, clients, stats.mean_interval(medians), limited, doubted))
    fields = [heat_map.Field("sockets", tuple(cells))]
    title = "Pool × clients: median latency of Lookup on sockets"
    speech = heat_map.text_alternative(title, fields)
    return Picture("pool_map", "pool_by_clients", title, lambda: heat_map.draw_heat_map(title, fields), speech)


def _mean_of(values: Sequence[float | None]) -> Estimate | None:
    """Over runs, all of which must have it."""
    kept = [value for value in values if value is not None]
    return stats.mean_interval(kept) if kept and len(kept) == len(values) else None


def _stages(rows: Sequence[Row]) -> Iterator[Picture]:
    """Where the time of a request goes, of every setting whose requests were stamped."""
    own = [row for row in rows if row.timeline and row.request != ALL and row.stage_total_us_mean is not None]
    shown = []
    for transport, request, clients in sorted({(row.transport, row.request, row.clients) for row in own}):
        runs = [row for row in own if (row.transport, row.request, row.clients) == (transport, request, clients)]

        def mean(name: str, of: Sequence[Row] = runs) -> float:
            return float(sum(getattr(row, name) or 0.0 for row in of) / len(of))

        shown.append(
            stages.Stages(
                label=f"{look(transport).label}, {clients_text(clients)}{_connections(runs)}",
                transport=transport,
                refused_by=_gates(rows, runs),
                load_limited=any(row.load_limited for row in runs),
                queue_wait_us=mean("stage_queue_us_mean"),
                preparation_us=mean("stage_preparation_us_mean"),
                lock_wait_us=mean("stage_lock_us_mean"),
                service_us=mean("stage_service_us_mean"),
                reply_us=mean("stage_reply_us_mean"),
                response_us_mean=_mean_of([row.response_us_mean for row in runs]),
                total_us_p50=_mean_of([row.stage_total_us_p50 for row in runs]),
                total_us_p99=_mean_of([row.stage_total_us_p99 for row in runs]),
            )
        )
    if shown:
        title = f"Where a Lookup’s time goes, pool of {own[0].workers}"
        speech = stages.text_alternative(title, shown)
        yield Picture("stages", own[0].part, title, lambda: stages.draw_stages(title, shown), speech)


def _gates(rows: Sequence[Row], runs: Sequence[Row]) -> tuple[int, ...]:
    """The numbers of those that refuse the runs."""
    if not _is_stock(rows):
        return ()
    return tuple(sorted({refusal.gate for refusal in runs_refused(rows, [runs])}))


def _connections(runs: Sequence[Row]) -> str:
    """Where a client has several."""
    most = max(row.connections for row in runs)
    return f" with {most} connections" if most > 1 else ""


def _offered(rows: Sequence[Row]) -> Iterator[Picture]:
    """Throughput and response times against the rate at which requests were due."""
    own = [row for row in rows if row.loop == "open" and row.request != ALL and row.rate_hz is not None]
    curves = []
    for transport, request in sorted({(row.transport, row.request) for row in own}):
        of_server = [row for row in own if (row.transport, row.request) == (transport, request)]
        rates = sorted({row.rate_hz for row in of_server if row.rate_hz is not None})
        loads = tuple(_load(rate_hz, [row for row in of_server if row.rate_hz == rate_hz], rows) for rate_hz in rates)
        curves.append(offered_load.Curve(look(transport).label, transport, request, loads))
    if curves:
        title = "Lookup in an open loop: what is offered, what is answered, and how soon"
        speech = offered_load.text_alternative(title, curves)
        yield Picture(
            "offered_load", "offered_load", title, lambda: offered_load.draw_offered_load(title, curves), speech
        )


def _load(rate_hz: float, runs: Sequence[Row], sweep: Sequence[Row]) -> offered_load.Load:
    """One rate's runs as a point, hollow where a gate refuses any of them, or the whole sweep: a mean falls with what
    it is of, as a comparison does. Past the knee the server answers less than it is offered, which no gate holds
    against a run.

    A percentile that gate 13 refuses in any run is not drawn at all.
    """
    found = {run.run_id: refusals(run) for run in arm_evidence(runs, percentiles=True)}

    def of_rank(rank: float, value: Callable[[Row], float | None]) -> Estimate | None:
        beyond = any(each.gate == 13 and each.rank == rank for row in runs for each in found[row.run_id])
        return None if beyond else _mean_of([value(row) for row in runs])

    throughput, response = (
        [forbidding(found[row.run_id], Conclusion(kind, row.run_id)) for row in runs]
        for kind in ("throughput", "latency")
    )
    return offered_load.Load(
        offered_hz=rate_hz,
        achieved_hz=stats.mean_interval([row.throughput_all_hz for row in runs]),
        response_us_p50=of_rank(50.0, lambda row: row.response_us_p50),
        response_us_p99=of_rank(99.0, lambda row: row.response_us_p99),
        refused=_reason(throughput, runs_refused(sweep, [], "throughput")),
        response_refused=_reason(response, runs_refused(sweep, [])),
    )


def _reason(by_run: Sequence[Sequence[Refusal]], of_sweep: Sequence[Refusal]) -> str:
    """The gates that refuse, in how many of the runs or the sweep as such, and what the first of each says; empty where
    none does."""
    scopes = (
        ([refusal for run in by_run for refusal in run], f"in {sum(map(bool, by_run))} of {len(by_run)} runs"),
        (list(of_sweep), "for the whole sweep"),
    )
    texts = []
    for found, where in scopes:
        if found:
            gates = ", ".join(map(str, sorted({refusal.gate for refusal in found})))
            texts.append(f"gate {gates} {where}: {min(found, key=lambda refusal: refusal.gate).what}")
    return "; ".join(texts)


def _distributions(results: Results, refused: Refused) -> Iterator[Picture]:
    """Percentile curves of the two servers' Lookup, with the fewest and the most clients of figures 2 and 4."""
    own = [record for record in results.records if record.run.setting.part in ("figure_2", "figure_4")]
    counts = sorted({record.run.setting.clients for record in own})
    lines = []
    for clients in sorted({*counts[:1], *counts[-1:]}):
        for part, transport in (("figure_2", "grpc"), ("figure_4", "sockets")):
            runs = [
                record.seen
                for record in own
                if (record.run.setting.part, record.run.setting.clients) == (part, clients)
            ]
            found = tuple(run for run in map(_counted, runs) if run is not None)
            if found:
                label = f"{look(transport).label}, {clients_text(clients)}"
                doubted = any(
                    (row.run_id, row.request) in refused
                    for row in results.rows
                    if (row.part, row.clients) == (part, clients)
                )
                lines.append(distributions.Line(label, transport, "lookup", found, doubted))
    if lines:
        title = "How long a Lookup takes, up to the slowest"
        speech = distributions.text_alternative(title, lines)
        yield Picture(
            "distributions", "distributions", title, lambda: distributions.draw_distributions(title, lines), speech
        )


def _counted(seen: Observation) -> distributions.Run | None:
    """A run's response times, counted upwards."""
    if seen.load is None or not seen.load.requests[ALL].count:
        return None
    (part,) = seen.load.parts.values()  # of one request type
    _, highest, counts = part.response.buckets()
    effective = effective_count(int(counts.sum()), seen.load.slices.design_effect(99.0))
    return distributions.Run(tuple((highest / 1000).tolist()), tuple(np.cumsum(counts).tolist()), effective)
