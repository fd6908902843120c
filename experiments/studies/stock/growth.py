"""How latency and throughput go on with the clients, beside the verdict on the growth of latency: question 2's details.

Rules: a slope is said with its interval over blocks, where no gate refuses the runs that it is of nor the comparison
that it stands beside; of throughput only a verdict is said. How far latency and N ÷ throughput lie apart is a check on
every run, and is no estimate. Left out: the comparison itself, and what may not be concluded from it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from experiments import stats
from experiments.results import Row
from experiments.stats import Verdict
from experiments.studies.stock.comparisons import Judged, judge_rates, runs_refused
from experiments.studies.stock.declared import clients_text
from experiments.studies.stock.wording import Phrases, interval_text, refusal_text, sentence, starved_text

LITTLE_MARGIN = 0.02
"""Little's law counts as violated where the two sides differ by more."""


def growth_details(rows: Sequence[Row], server: str, part: str, growth: Judged | None) -> Iterator[str]:
    """Sentences on one server's part, Lookup; ``growth`` is its comparison of the most clients with the fewest."""
    own = [row for row in rows if row.part == part and row.request == "lookup"]
    if growth is None:
        return
    yield f"{server}: {_slopes(rows, own, growth)}"
    apart = [abs(row.response_us_mean / row.n_over_x_us - 1) for row in own if row.response_us_mean and row.n_over_x_us]
    if apart:
        size = f"at most {100 * max(apart):.1f} %" if max(apart) >= 0.001 else "less than 0.1 %"
        yield (
            f"{server}: latency and N ÷ throughput differ by {size} in any run; the client’s own time between two "
            "requests is in the second only."
        )
    off = sum(violates_littles_law(row) for row in own)
    if off:
        yield (
            f"{server}: Little’s law does not hold to within 2 % in {off} of {len(own)} runs: the report marks what "
            "rests on them."
        )
    rates = judge_rates(rows, part)
    if rates:
        yield f"{server}: {_throughput(rates)}"


def violates_littles_law(row: Row) -> bool:
    """Whether throughput × (latency + think time) is not the connections that send: clock or counting are in doubt."""
    return row.little_ratio is not None and abs(row.little_ratio - 1) > LITTLE_MARGIN


def _slopes(rows: Sequence[Row], own: Sequence[Row], growth: Judged) -> str:
    arms = [[row for row in own if row.clients == clients] for clients in sorted({row.clients for row in own})]
    refused = growth.refused + runs_refused(rows, arms)
    if refused or growth.starved_blocks:
        why = refusal_text(refused) if refused else starved_text(growth)
        return f"what each further client adds to the mean latency is not decided ({why})."
    latency = slope_us_per_client(own, lambda row: row.response_us_mean)
    law = slope_us_per_client(own, lambda row: row.n_over_x_us)
    return (
        f"each further client adds {interval_text(latency, 'µs')} to the mean latency; to N ÷ throughput it adds "
        f"{interval_text(law, 'µs')}."
    )


def slope_us_per_client(rows: Sequence[Row], measure: Callable[[Row], float | None]) -> stats.Estimate:
    """The slope of a straight line over the clients, fitted in each block, and its interval over the blocks.

    The rows are of one request type and server. ValueError if no block has two numbers of clients.
    """
    slopes: list[float] = []
    for block in sorted({row.block for row in rows}):
        values = {row.clients: value for row in rows if row.block == block and (value := measure(row)) is not None}
        if len(values) > 1:
            slopes.append(float(np.polyfit(list(values), list(values.values()), deg=1)[0]))
    return stats.mean_interval(slopes)


def _throughput(rates: Mapping[int, Judged]) -> str:
    """From the fewest clients on whose throughput is that of the most; if there are none, how the last step goes."""
    flat = flat_from(rates)
    clients = max(rates) if flat is None else flat
    one = rates[clients]
    most, of = one.contrast.above.clients, f"({one.contrast.text})"
    step = f"from {clients_text(clients)} to {most}"
    room = "" if one.load_limited else ", so the server may not be full yet"
    phrases = Phrases(
        equivalent=(
            f"from {clients_text(clients)} on, throughput is that of {most} clients to within 5 %, and latency grows "
            f"in proportion to the clients, by arithmetic {of}"
        ),
        faster=f"throughput still grows {step}{room} {of}",
        slower=f"throughput falls {step} {of}",
        undecided=f"whether throughput changes {step} is not decided {of}",
    )
    return sentence(one, phrases, "it says nothing of the server’s capacity")


def flat_from(rates: Mapping[int, Judged]) -> int | None:
    """The fewest clients from which on throughput is EQUIVALENT to that at the most; None if there are none."""
    flat = None
    for clients in sorted(rates, reverse=True):
        if rates[clients].result.verdict is not Verdict.EQUIVALENT:
            break
        flat = clients
    return flat
