"""Tables of a judged sweep, as Markdown: comparisons, arms, claims, what was refused, what was left out, the machine.

A number stands beside its interval. A missing measurement is a dash. ``†`` marks a time that is the load side's too,
``§`` a time that a gate refuses. The page renders the same Markdown. Left out: sentences, and the order of tables.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from experiments.design.arms import Arm, Comparison
from experiments.design.factors import FACTORS
from experiments.design.setting import Setting
from experiments.judge import gates, ratios
from experiments.judge.points import Point
from experiments.judge.verdicts import Judged, Judgement
from experiments.results import observed
from experiments.results.environment import UNKNOWN, Busy, Environment
from experiments.results.machine import TICK_S
from experiments.results.observed import ALL, FATES, KEPT, RoundSeen
from experiments.show.figures.style import label
from experiments.show.numbers import (
    NOTHING,
    counted,
    number,
    percent,
    ratio_words,
    time_unit,
    times_between,
)
from experiments.show.sentences import undecided_words, verdict_words

NONE_LEFT_OUT = "No round was left out."

LIMITED_MARK, REFUSED_MARK, WHOLE_MARK = "†", "§", "‡"

LIMITED_NOTE = (
    f"{LIMITED_MARK} The load side took over 80 % of its core. Such a time is that of client and server together."
)
REFUSED_NOTE = f"{REFUSED_MARK} A gate refuses these runs. No verdict rests on the number."
WHOLE_NOTE = f"{WHOLE_MARK} Typical ratio and ratio of means disagree here. Pauses fell on one side more."
UNKNOWN_LOAD_NOTE = (
    f"{NOTHING} as the load side’s share: its program does not say its processor time. The load may have been "
    "at its limit."
)
FEW_NOTE = f"{NOTHING} Too few requests for this percentile: ten independent ones must be slower than it."
TWINS_HEADING = "A/A pairs: one setting, started as two servers"
TWINS_NOTE = "A/A pair: one setting, started as two servers. What differs between the two is noise."

Cells = tuple[str, ...]

_YES_NO = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a head, lines, and the meaning of its marks."""

    head: Cells
    lines: tuple[Cells, ...]
    texts: int = 1
    """Number of columns, from the left, that are words; the others are numbers, set to the right."""
    notes: tuple[str, ...] = ()

    @property
    def markdown(self) -> str:
        """The table in Markdown; the words "Nothing to show." for a table without rows."""
        if not self.lines:
            return "Nothing to show.\n"
        rule = tuple(":---" if column < self.texts else "---:" for column in range(len(self.head)))
        table = "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in (self.head, rule, *self.lines))
        return "\n\n".join((table, *self.notes)) + "\n"


def comparisons(judgement: Judgement, judged: Iterable[Judged]) -> Table:
    """Table of the judgement of each comparison: ratio, interval, verdict, Holm's p, and the blocks that would decide
    it."""
    shown = tuple(judged)
    apart = any(each.typical_is_not_whole for each in shown)
    open_ = any(undecided_words(each) for each in shown)
    limited = {each.comparison.name for each in shown if load_limited(judgement, each)}
    lines = [
        (
            each.comparison.title
            + (f" {LIMITED_MARK}" if each.comparison.name in limited else "")
            + (f" {WHOLE_MARK}" if each.typical_is_not_whole else ""),
            f"**{verdict_words(each)}**" if each.rulings else verdict_words(each),
            *ratio_words(each.typical),
            *((", ".join(ratio_words(each.whole)),) if apart else ()),
            ", ".join(f"{ruling.p_holm:.2g}" for ruling in each.rulings) or NOTHING,
            str(each.typical.n),
            *((undecided_words(each) or NOTHING,) if open_ else ()),
        )
        for each in shown
    ]
    interval = f"{percent(judgement.confidence)} interval"
    head: Cells = ("Time of A ÷ B", "Verdict", "Ratio", interval, *(("Of whole means",) if apart else ()))
    notes = [LIMITED_NOTE] * bool(limited) + [WHOLE_NOTE] * apart
    head = (*head, "p (Holm)", "Blocks", *(("Would decide",) if open_ else ()))
    return Table(head, tuple(lines), 2, tuple(notes))


def load_limited(judgement: Judgement, judged: Judged) -> bool:
    """True where the load side was near its limit in either arm."""
    arms = (judged.comparison.above, judged.comparison.below)
    return any(gates.is_load_limited(judgement.sweep, judgement.blocks, arm) for arm in arms)


def points(shown: Sequence[Point]) -> Table:
    """Table of the points of each arm: the factors that vary among them, mean and percentiles, processor time.

    An arm that sends requests of one type has one line, of that type.
    """
    types = Counter(point.arm for point in shown)
    shown = [point for point in shown if point.request != ALL or types[point.arm] != 2]
    varied = [name for name in FACTORS if len({point.arm.setting[name] for point in shown}) > 1]
    unit, factor = time_unit(point.mean_us.value for point in shown if point.mean_us)
    starved = any(point.starved_clients for point in shown)
    failed = any(point.errors for point in shown)
    twins = {point.arm.setting for point in shown if point.arm.copy}
    head = (
        *(name.capitalize().replace("_", " ") for name in varied),
        *(("A/A pair",) if twins else ()),
        "Request",
        f"Mean, {unit}",
        "95 % interval",
        f"Median, {unit}",
        f"p99, {unit}",
        "Server CPU, µs a request",
        "Load side, % of its core",
        *(("Errors",) if failed else ()),
        *(("Starved clients",) if starved else ()),
    )
    lines = [
        (
            *(_level(point.arm, name) for name in varied),
            *((_twin(point.arm, twins),) if twins else ()),
            point.request,
            (number(point.mean_us.value / factor) if point.mean_us else NOTHING) + _marks(point),
            times_between(point.mean_us, factor) if point.mean_us else NOTHING,
            _percentile(point, 50, factor),
            _percentile(point, 99, factor),
            number(point.server_cpu_us.value) if point.server_cpu_us else NOTHING,
            NOTHING if point.load_share is None else f"{100 * point.load_share:.0f}",
            *((str(point.errors),) if failed else ()),
            *((str(point.starved_clients),) if starved else ()),
        )
        for point in shown
    ]
    notes = [LIMITED_NOTE] * any(point.load_limited for point in shown)
    notes += [REFUSED_NOTE] * any(point.refusals for point in shown)
    notes += [UNKNOWN_LOAD_NOTE] * any(point.load_share is None for point in shown)
    notes += [FEW_NOTE] * any(point.percentile_us(99) is None for point in shown)
    notes += [TWINS_NOTE] * bool(twins)
    return Table(head, tuple(lines), len(varied) + bool(twins) + 1, tuple(notes))


def refusals(judgement: Judgement) -> Table:
    """Table of gates' refusals of comparisons, in words: a line for each comparison and gate.

    A comparison that is left out of every block has no value, and is named here alone.
    """
    lines = [line for judged in judgement.judged.values() for line in _refused(judged)]
    for each in judgement.sweep.comparisons:
        if each.name not in judgement.judged and judgement.blocks:
            lines.extend(_without_value(judgement, each))
    return Table(("Comparison", "Gate", "What it saw", "So"), tuple(lines), 4)


def left_out(judgement: Judgement) -> Table:
    """Table of the lost slices of each arm, by the reason of the loss."""
    lines = []
    for place, arm in enumerate(judgement.sweep.arms):
        fates = [
            fate
            for block in judgement.blocks
            for own, fate in zip(block.slices.arm, block.slices.fate, strict=True)
            if own == place
        ]
        lost = [fates.count(fate) for fate in range(len(FATES)) if fate != KEPT]
        if any(lost):
            lines.append((arm.name, str(len(fates)), *(str(count) if count else NOTHING for count in lost)))
    lost_as = (name.capitalize() for fate, name in enumerate(FATES) if fate != KEPT)
    return Table(("Arm", "Slices", *lost_as), tuple(lines))


def rounds_sentence(judgement: Judgement) -> str:
    """Sentences on the rounds that were left out since others took the cores, on these others, and on marked blocks."""
    limits, rounds = judgement.sweep.limits, [each for block in judgement.blocks for each in block.rounds]
    out = sum(len(observed.left_out(limits, block.rounds, block.cores)) for block in judgement.blocks)
    marked = [str(block.number) for block in judgement.blocks if ratios.is_robbed_block(limits, block)]
    again = sum(block.attempt > 1 for block in judgement.blocks)
    text = NONE_LEFT_OUT
    if out:
        text = (
            f"{out:,} of {counted(len(rounds), 'round')} {'was' if out == 1 else 'were'} left out: {_who_took(rounds)}."
        )
    text += f" {counted(again, 'block')} {'was' if again == 1 else 'were'} run again." if again else ""
    if not marked:
        return text
    why = "" if out else f": {_who_took(rounds)}"
    blocks = f"block{'s' * (len(marked) > 1)} {', '.join(marked)}"
    return f"{text} In {blocks} over half the rounds lost time, and all rounds count{why}."


def _who_took(rounds: Sequence[RoundSeen]) -> str:
    """Names of the programs that had the cores in these rounds, with their processor time where it was watched."""
    foreign = [each.foreign_ticks for each in rounds if each.foreign_ticks is not None]
    if not foreign:
        return "the hypervisor took the cores"
    stolen_s, foreign_s = sum(each.steal_ticks for each in rounds) * TICK_S, sum(foreign) * TICK_S
    return (
        f"others took the cores. In all rounds the hypervisor took {stolen_s:.1f} s of processor time, and processes "
        f"that are none of the sweep's {foreign_s:.1f} s"
    )


def machine(environment: Environment) -> Table:
    """Table of the machine and the software."""
    lines = [
        ("Processor", f"{environment.cpu_model}, {environment.machine}"),
        ("Cores used", str(environment.cores)),
        ("Frequency governor", environment.governor),
        ("Threads of one physical core", _YES_NO[environment.smt_siblings]),
        ("Virtual machine", _YES_NO[environment.hypervisor]),
        ("Memory", f"{environment.memory_mib:,} MiB"),
        ("System", f"{environment.system}, {environment.kernel}"),
        ("Clock", environment.clock),
        ("Python", f"{environment.python}, {'with' if environment.gil else 'without'} the global interpreter lock"),
        ("Other languages", ", ".join(environment.languages.values()) or UNKNOWN),
        ("Network interfaces up", interfaces(environment)),
        ("Power", environment.power),
        ("Processes", UNKNOWN if environment.processes is None else str(environment.processes)),
        ("Packages", ", ".join(f"{name} {version}" for name, version in environment.packages.items())),
        ("Commit", environment.commit + (", with changes" if environment.dirty else "")),
        ("Before", _busy(environment.before)),
        ("After", _busy(environment.after) if environment.after else "the sweep had not ended"),
    ]
    if environment.after:
        stolen = environment.after.cpu_steal_s - environment.before.cpu_steal_s
        lines.append(("Taken by the hypervisor", f"{stolen:.1f} processor seconds"))
    return Table(("Parameter", "Value"), tuple(lines), 2)


def interfaces(environment: Environment) -> str:
    """Network interfaces that are up, without the loopback."""
    return UNKNOWN if environment.interfaces is None else ", ".join(environment.interfaces) or "the loopback alone"


def _refused(judged: Judged) -> Iterator[Cells]:
    title = judged.comparison.title
    for refusal in judged.refusals:
        yield title, _gate(refusal.gate), refusal.said, "no verdict"
    said = {(refusal.gate, refusal.said): number for number, each in judged.dropped.items() for refusal in each}
    for gate in dict.fromkeys(gate for gate, _ in said):
        blocks = [str(number) for number, each in judged.dropped.items() if gate in {one.gate for one in each}]
        example = next(text for number, text in said if number == gate)
        yield title, _gate(gate), example, f"without block {', '.join(blocks)}"


def _without_value(judgement: Judgement, comparison: Comparison) -> Iterator[Cells]:
    sweep = judgement.sweep
    found = {
        refusal.gate: refusal
        for block in judgement.blocks
        for refusal in gates.block_refusals(sweep, block, comparison)
    }
    for gate, refusal in found.items():
        yield comparison.title, _gate(gate), refusal.said, "no value in any block"
    if not found:
        yield comparison.title, NOTHING, "no pair of slices is whole", "no value in any block"


def _gate(gate: int) -> str:
    return f"{gate}: {gates.NAMES.get(gate, 'unnamed')}"


def _level(arm: Arm, name: str) -> str:
    text = arm.setting.text(name)
    return label(text) if name == "transport" else text


def _twin(arm: Arm, twins: set[Setting]) -> str:
    if arm.setting not in twins:
        return ""
    return "second server" if arm.copy else "first server"


def _marks(point: Point) -> str:
    return LIMITED_MARK * point.load_limited + REFUSED_MARK * bool(point.refusals)


def _percentile(point: Point, percentile: float, factor: float) -> str:
    value = point.percentile_us(percentile)
    return NOTHING if value is None else number(value / factor)


def _busy(busy: Busy) -> str:
    moment = f"{busy.at}: load {busy.load_1_min:g}, {busy.memory_available_mib:,.0f} MiB free"
    return f"{moment}, fixed work {number(busy.fixed_work_us)} µs, wake-up {number(busy.wake_up_us)} µs"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
