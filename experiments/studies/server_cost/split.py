"""Shares of a request's processor time: the kernel, the interpreter, the protocol, protobuf, the service.

The servers take turns in a block, and the shares are computed for each block. The difference of two arms is computed
from the mean of one arm and the typical ratio of the two arms in neighbouring slices. The functions are pure. The
shares are

- kernel: the processor time of a Lookup in the kernel, sampled by clock ticks.
- interpreter: the processor time of the null server outside the kernel. The null server is one thread of Python that
  receives requests, and sends a constant in the thinnest framing. All servers have the same interpreter share.
- protobuf: the processor time of an echo whose message is encoded and decoded once more − the processor time of a plain
  echo, both on sockets.
- service: the processor time of a Lookup − the processor time of an echo on the same server. The lock and the larger
  reply of a Lookup belong to the service.
- protocol: the rest, that is, framing or HTTP/2, the protocol's checks, and the executor.

Python code that the null server lacks counts as protocol, unless the code is in protobuf or service. grpcio, whose
protocol is in C, may spend less time in Python than the null server.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from experiments.design.arms import Arm, Comparison
from experiments.judge import ratios
from experiments.judge.gates import arm_refusals
from experiments.judge.points import CONFIDENCE
from experiments.judge.stats import Estimate, mean_interval
from experiments.judge.verdicts import Judgement
from experiments.results.environment import Environment
from experiments.results.observed import Block
from experiments.services import STOCK
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import shares
from experiments.show.figures.style import Picture
from experiments.show.numbers import counted, has_interval, number, percent
from experiments.show.tables import Table
from experiments.studies.server_cost.goals import estimate
from experiments.studies.server_cost.sweeps import CONNECTIONS, NULL_SERVER, SOCKETS, THREE, echo_of, twice_of

SHARES = ("kernel", "interpreter", "protocol", "protobuf", "service")
"""Names of the shares, in the order of tables and figures."""

NAMES = {"sockets": "sockets", "grpc_static": "our own gRPC server", "grpc": "grpcio"}
"""Names of the three servers in texts, by the servers' transports."""

BELOW_0 = "A share under 0 with 0 in its interval: the difference is too small for these blocks."
SURELY_BELOW_0 = "A share whose whole interval is under 0: the subtracted times are larger than the time itself."

QUANTITY = "Processor time of the server for each Lookup, µs"

CLIENT = f"{CONNECTIONS} connections of one lean client"
"""Words for the load in every figure of processor time."""

LOAD = f"{CLIENT} never let the server sleep, and the stocks are in memory."


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of a Lookup's processor time on one server, over the blocks that have every share."""

    name: str
    """Name of the server in texts."""
    shares: Mapping[str, Estimate]
    """Processor time of a Lookup in µs, by share."""

    @property
    def blocks(self) -> int:
        """Number of blocks that have every share."""
        return self.shares[SHARES[0]].n

    @property
    def total_us(self) -> float:
        """Whole processor time of a Lookup in µs: the sum of all shares."""
        return sum(each.value for each in self.shares.values())


def splits(judgement: Judgement) -> tuple[Split, ...]:
    """Shares of a Lookup's processor time, for each server that has every share in at least one block."""
    found = []
    for lookup in map(Arm, THREE):
        blocks = [each for block in judgement.blocks if (each := _of(judgement, block, lookup)) is not None]
        if blocks:
            estimates = {name: mean_interval([each[name] for each in blocks], CONFIDENCE) for name in SHARES}
            found.append(Split(NAMES[lookup.setting.text("transport")], estimates))
    return tuple(found)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answer with the shares of each server, without a verdict."""
    found = splits(seen.main)
    told = [_told(each) for each in found]
    blocks = " or ".join(counted(each, "block") for each in sorted({each.blocks for each in found})) or "no block"
    executors = " or the ".join(
        dict.fromkeys(arm.setting.executor for arm in seen.main.sweep.arms if arm.setting["service"] == STOCK)
    )
    return (
        Answer(
            "Where does a request's processor time go?",
            " ".join((LOAD, *told)) if told else "Not known: no block has every share.",
            (),
            details=(
                "The interpreter's share is the time of the null server, which sends a constant reply. Further work of "
                "a server in Python belongs to the share of its protocol.",
                "These shares have no verdict.",
                *_below_0(found),
            ),
            estimand=(
                "processor time of the server process for each Lookup, and its shares. Connections are kept, and every "
                f"Lookup is on the {executors}. Numbers are means over {blocks}."
            ),
            not_concluded=(
                "That the interpreter takes equal time on all servers: its share is measured on the null server alone.",
                "That protobuf's share holds for large messages: these messages have some ten bytes.",
            ),
            figure="split" if found else None,
        ),
    )


def sections(seen: Seen) -> tuple[Section, ...]:
    """Section with the table of shares and their intervals."""
    return (Section("Where a request's processor time goes", table(splits(seen.main))),)


def speed(environment: Environment | None) -> str:
    """Words on the speed of the machine in this run, since the speed of a shared machine differs from hour to hour.
    Empty without a record of the machine."""
    if environment is None:
        return ""
    ends = filter(None, (environment.before, environment.after))
    fixed_work_ms = fmean(each.fixed_work_us for each in ends) / 1000
    return f"; on a machine that does a fixed piece of other work in {number(fixed_work_ms)} ms"


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figure with a bar of shares for each server."""
    bars = [shares.Bar(each.name, {name: each.shares[name].value for name in SHARES}) for each in splits(seen.main)]
    title = f"Where a Lookup's processor time goes, with {CLIENT}"
    return (shares.picture("split", title, QUANTITY + speed(seen.environment), bars),)


def table(found: Sequence[Split]) -> str:
    """Table with a row for each server and a column for each share."""
    rows = tuple(
        (of.name, *(estimate(of.shares[each], "µs") for each in SHARES), f"{number(of.total_us)} µs") for of in found
    )
    note = " ".join(("Means over blocks with their 95 % intervals.", *_below_0(found)))
    return Table(("server", *SHARES, "in all"), rows, texts=1, notes=(note,)).markdown


def _below_0(found: Sequence[Split]) -> Iterator[str]:
    """Sentences on negative shares: one sentence where the interval of a negative share reaches 0, and one sentence
    where the whole interval is below 0.
    """
    shares = [share for of in found for share in of.shares.values()]
    if any(share.value < 0 <= share.high and has_interval(share) for share in shares):
        yield BELOW_0
    if any(share.high < 0 for share in shares):
        yield SURELY_BELOW_0


def _told(of: Split) -> str:
    """Sentence on a server: ``A Lookup on sockets takes 13 µs: kernel 40 %, …``"""
    parts = [f"{name} {percent(of.shares[name].value / of.total_us)}" for name in SHARES]
    return f"A Lookup on {of.name} takes {number(of.total_us)} µs: {', '.join(parts)}."


def _of(judgement: Judgement, block: Block, lookup: Arm) -> Mapping[str, float] | None:
    """Shares of a server in a block, in µs. None where a share has no value, or a gate refuses an arm."""
    base, null = lookup.setting, Arm(NULL_SERVER)
    echo, twice = Arm(echo_of(SOCKETS)), Arm(twice_of(SOCKETS))
    read = (
        *(_cost_us(judgement, block, arm) for arm in (lookup, null, echo)),
        *(_kernel_share(judgement, block, arm) for arm in (lookup, null)),
        _ratio(judgement, block, lookup, Arm(echo_of(base))),
        _ratio(judgement, block, twice, echo),
    )
    whole, least, echo_us, in_kernel, null_in_kernel, over_echo, twice_over = (each or 0.0 for each in read)
    if None in read:
        return None
    kernel, interpreter = whole * in_kernel, least * (1 - null_in_kernel)
    protobuf, service = echo_us * (twice_over - 1), whole * (1 - 1 / over_echo)
    protocol = whole - kernel - interpreter - protobuf - service
    return dict(zip(SHARES, (kernel, interpreter, protocol, protobuf, service), strict=True))


def _cost_us(judgement: Judgement, block: Block, arm: Arm) -> float | None:
    """Processor time of a request on an arm in a block, in µs. None without a value, or where a gate refuses the
    arm."""
    sweep = judgement.sweep
    if arm not in sweep.arms or any(arm_refusals(sweep, block, arm)):
        return None
    return ratios.arm_cpu_us(sweep, block, sweep.arms.index(arm))


def _ratio(judgement: Judgement, block: Block, above: Arm, below: Arm) -> float | None:
    """Typical ratio of two arms' processor times over the pairs of slices in a block, above ÷ below. None without a
    whole pair, or where a gate refuses an arm."""
    if _cost_us(judgement, block, above) is None or _cost_us(judgement, block, below) is None:
        return None
    differ = above.setting.unlike(below.setting)
    log_ratio = ratios.typical(judgement.sweep, block, Comparison("", "", above, below, differ, measure="cpu"))
    return None if log_ratio is None else math.exp(log_ratio)


def _kernel_share(judgement: Judgement, block: Block, arm: Arm) -> float | None:
    """Share of a server's processor time in a block that is spent in the kernel. None where the share was not read."""
    sweep = judgement.sweep
    server = block.servers[sweep.servers.index(arm.server)] if arm in sweep.arms else None
    return None if server is None else server.kernel_share
