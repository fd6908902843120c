"""Tables of a judged sweep, as Markdown: comparisons, arms, refusals by gates, lost slices, and the machine.

An arm is a server under a load. Each interval stands in the column after its number. A dash stands for a missing value.
``†`` marks a time that client and server together determine. ``§`` marks a time that a gate, a check of the
measurements, refuses. Left out: the order of tables, and all sentences but ``rounds_sentence``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from experiments.design.arms import Comparison
from experiments.design.factors import FACTORS
from experiments.design.setting import Setting
from experiments.judge import gates, ratios
from experiments.judge.gates import Refusal
from experiments.judge.points import Point
from experiments.judge.points import points as measured
from experiments.judge.stats import Estimate
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
    ratio_with_ends,
    ratio_words,
    time_unit,
    times_between,
)
from experiments.show.sentences import undecided_words, verdict_words

NONE_LEFT_OUT = "No round was left out."

NO_PAIR = "no pair of turns counts, since replies were late or missing, or other programs took the cores"
"""Reason why a block has no value of a comparison, if no gate refuses the block."""

LIMITED_MARK, REFUSED_MARK, WHOLE_MARK = "†", "§", "‡"
"""Marks, each with a note below the table (``LIMITED_NOTE``, ``REFUSED_NOTE``, ``WHOLE_NOTE``)."""

LIMITED_NOTE = (
    f"{LIMITED_MARK} Client and server together determine this time: "
    "the load side took over 80 % of its core, or sent late."
)
NO_BOUND = f"{LIMITED_MARK} The client was at its limit on both servers: the ratio tells nothing of the servers alone."
REFUSED_NOTE = f"{REFUSED_MARK} A gate refuses this number. No verdict uses the number."
WHOLE_NOTE = f"{WHOLE_MARK} The typical ratio and the ratio of plain means disagree here. One side had longer pauses."
UNKNOWN_LOAD_NOTE = (
    f"{NOTHING} as the load side’s share: the load’s program does not report processor time. The load may have been at "
    "its limit."
)
FEW_NOTE = f"{NOTHING} Too few requests: a percentile needs ten independent requests that are slower."
TWINS_HEADING = "A/A pairs: one setting, started as two servers"
TWINS_NOTE = "A/A pair: one setting, started as two servers. A difference between the two servers is noise."

Cells = tuple[str, ...]

Shown = TypeVar("Shown")

Column = tuple[str, Callable[[Shown], str]]
"""Column of a table: the head of the column, and the function that gives the column's text for one object."""

_YES_NO = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, slots=True)
class Table:
    """Table: heads of columns, lines, and notes with the meanings of marks."""

    head: Cells
    lines: tuple[Cells, ...]
    texts: int = 1
    """Number of columns with words, from the left. The columns after these columns have numbers, and are aligned to the
    right."""
    notes: tuple[str, ...] = ()

    @property
    def markdown(self) -> str:
        """Table in Markdown. A table without lines is the sentence "Nothing to show."."""
        if not self.lines:
            return "Nothing to show.\n"
        rule = tuple(":---" if column < self.texts else "---:" for column in range(len(self.head)))
        table = "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in (self.head, rule, *self.lines))
        return "\n\n".join((table, *self.notes)) + "\n"


def _table(columns: Sequence[Column[Shown]], shown: Sequence[Shown], texts: int, notes: tuple[str, ...]) -> Table:
    """Table with one line for each object in ``shown``."""
    lines = tuple(tuple(cell(each) for _, cell in columns) for each in shown)
    return Table(tuple(head for head, _ in columns), lines, texts, notes)


def comparisons(judgement: Judgement, judged: Iterable[Judged]) -> Table:
    """Table of comparisons: ratio, interval, verdict, Holm's p, and the number of blocks for a verdict."""
    shown = tuple(judged)
    apart = any(each.typical_is_not_whole for each in shown)
    limited = {each.comparison.name for each in shown if _is_load_limited(judgement, each)}
    columns: list[Column[Judged]] = [
        (
            "Time of A ÷ B",
            lambda each: (
                each.comparison.title
                + f" {LIMITED_MARK}" * (each.comparison.name in limited)
                + f" {WHOLE_MARK}" * each.typical_is_not_whole
            ),
        ),
        ("Verdict", lambda each: f"**{verdict_words(each)}**" if each.rulings else verdict_words(each)),
        ("Ratio", lambda each: ratio_words(each.typical)[0]),
        (f"{percent(judgement.confidence)} interval", lambda each: ratio_words(each.typical)[1]),
        *[("Of plain means", lambda each: ", ".join(ratio_words(each.whole)))] * apart,
        ("p (Holm)", lambda each: ", ".join(f"{ruling.p_holm:.2g}" for ruling in each.rulings) or NOTHING),
        ("Blocks", lambda each: str(each.typical.n)),
        *[("Would decide", lambda each: undecided_words(each) or NOTHING)] * any(map(undecided_words, shown)),
    ]
    return _table(columns, shown, 2, (LIMITED_NOTE,) * bool(limited) + (WHOLE_NOTE,) * apart)


def _is_load_limited(judgement: Judgement, judged: Judged) -> bool:
    """True if the load was near its limit in one of the two arms. False for processor times, which the server alone
    determines."""
    return judged.comparison.measure != "cpu" and any(judgement.limited(judged))


def bounded(judgement: Judgement, judged: Judged) -> str:
    """Text of a ratio of rates, lower arm ÷ upper arm, with its interval and its bound.

    A server on which the load was at its limit can answer more. So the ratio is a bound if the load was at its limit on
    one arm alone. The text then begins with "at least" if this arm is the lower arm, and with "at most" if this arm is
    the upper arm. If the load was at its limit on both arms, the text has the mark ``†`` and no bound.
    """
    above, below = judgement.limited(judged)
    bound = "" if above == below else "at least " if below else "at most "
    return f"{bound}{ratio_with_ends(judged.typical)}" + f" {LIMITED_MARK}" * (above and below)


def points(judgement: Judgement) -> Table:
    """Table of the points: the factors with several levels, the mean, percentiles and processor time of each arm.

    If all requests of an arm have one type, the arm has only the line of this type.
    """
    found = measured(judgement.sweep, judgement.blocks).values()
    types = Counter(point.arm for point in found)
    shown = [point for point in found if point.request != ALL or types[point.arm] != 2]
    varied = [name for name in FACTORS if len({point.arm.setting[name] for point in shown}) > 1]
    unit, factor = time_unit(point.mean_us.value for point in shown if point.mean_us)
    twins = {point.arm.setting for point in shown if point.arm.copy}
    columns: list[Column[Point]] = [
        *((name.capitalize().replace("_", " "), partial(_level, name)) for name in varied),
        *[("A/A pair", partial(_twin, twins))] * bool(twins),
        ("Request", lambda point: point.request),
        (f"Mean, {unit}", lambda point: _number(point.mean_us, factor) + _marks(point)),
        ("95 % interval", lambda point: times_between(point.mean_us, factor) if point.mean_us else NOTHING),
        (f"Median, {unit}", lambda point: _number(point.percentile_us(50), factor)),
        (f"p99, {unit}", lambda point: _number(point.percentile_us(99), factor)),
        ("Server CPU, µs a request", lambda point: _number(point.server_cpu_us)),
        (
            "Load side, % of its core",
            lambda point: NOTHING if point.load_share is None else f"{100 * point.load_share:.0f}",
        ),
        *[("Errors", lambda point: str(point.errors))] * any(point.errors for point in shown),
        *[("Starved clients", lambda point: str(point.starved_clients))] * any(p.starved_clients for p in shown),
    ]
    notes = {
        LIMITED_NOTE: any(point.load_limited for point in shown),
        REFUSED_NOTE: any(point.refusals for point in shown),
        UNKNOWN_LOAD_NOTE: any(point.load_share is None for point in shown),
        FEW_NOTE: any(point.percentile_us(99) is None for point in shown),
        TWINS_NOTE: bool(twins),
    }
    words = len(varied) + bool(twins) + 1
    return _table(columns, shown, words, tuple(note for note, is_true in notes.items() if is_true))


def refusals(judgement: Judgement) -> Table:
    """Table of the refusals by gates, with a line for each comparison and gate.

    A comparison that has no value in any block is in no other table.
    """
    lines = [line for judged in judgement.judged.values() for line in _refused(judged)]
    for each in judgement.sweep.comparisons if judgement.blocks else ():
        if each.name not in judgement.judged:
            lines.extend(_without_value(judgement, each))
    return Table(("Comparison", "Gate", "Measured", "Consequence"), tuple(lines), 4)


def left_out(judgement: Judgement) -> Table:
    """Table of lost slices: the number for each arm and each reason of a loss."""
    lines, seen = [], [block.slices for block in judgement.blocks]
    fates = Counter(pair for each in seen for pair in zip(each.arm, each.fate, strict=True))
    for place, arm in enumerate(judgement.sweep.arms):
        counts = [fates[place, fate] for fate in range(len(FATES))]
        lost = [count for fate, count in enumerate(counts) if fate != KEPT]
        if any(lost):
            lines.append((arm.name, str(sum(counts)), *(str(count) if count else NOTHING for count in lost)))
    lost_as = (name.capitalize() for fate, name in enumerate(FATES) if fate != KEPT)
    return Table(("Arm", "Slices", *lost_as), tuple(lines))


def rounds_sentence(judgement: Judgement) -> str:
    """Sentences on rounds that were left out, and on the programs that took the cores. Further sentences are on blocks
    that were run again, and on blocks in which over half of the rounds lost time."""
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
    return f"{text} Of {blocks} all rounds count, since over half of them lost time{why}."


def _who_took(rounds: Sequence[RoundSeen]) -> str:
    """Words on the programs that took the cores in these rounds. If foreign processes were watched, the words give the
    processor times, too."""
    foreign = [each.foreign_ticks for each in rounds if each.foreign_ticks is not None]
    if not foreign:
        return "the hypervisor took the cores"
    stolen_s, foreign_s = sum(each.steal_ticks for each in rounds) * TICK_S, sum(foreign) * TICK_S
    return (
        f"other programs took the cores. In all rounds the hypervisor took {stolen_s:.1f} s of processor time, and "
        f"foreign processes took {foreign_s:.1f} s"
    )


def machine(environment: Environment) -> Table:
    """Table of the machine and its software."""
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
    """Names of the network interfaces that are up, except the loopback."""
    return UNKNOWN if environment.interfaces is None else ", ".join(environment.interfaces) or "the loopback alone"


def _refused(judged: Judged) -> Iterator[Cells]:
    """Lines on the refusals of a whole comparison, and of single blocks of the comparison."""
    title = judged.comparison.title
    for refusal in judged.refusals:
        yield title, _gate(refusal.gate), refusal.said, "no verdict"
    found: dict[int, dict[int, Refusal]] = {}
    for block, each in judged.dropped.items():
        for refusal in each:
            found.setdefault(refusal.gate, {}).setdefault(block, refusal)
    for gate, blocks in found.items():
        example = next(iter(blocks.values())).said
        yield title, _gate(gate), example, f"without block {', '.join(map(str, blocks))}"


def _without_value(judgement: Judgement, comparison: Comparison) -> Iterator[Cells]:
    """Lines on the reasons why a comparison has no value in any block."""
    sweep = judgement.sweep
    found = {
        refusal.gate: refusal
        for block in judgement.blocks
        for refusal in gates.block_refusals(sweep, block, comparison)
    }
    for gate, refusal in found.items():
        yield comparison.title, _gate(gate), refusal.said, "no value in any block"
    if not found:
        yield comparison.title, NOTHING, NO_PAIR, "no value in any block"


def _gate(gate: int) -> str:
    """Number and name of a gate: ``4: errors``."""
    return f"{gate}: {gates.NAMES.get(gate, 'unnamed')}"


def _level(name: str, point: Point) -> str:
    text = point.arm.setting.text(name)
    return label(text) if name == "transport" else text


def _twin(twins: set[Setting], point: Point) -> str:
    """Words for the server of an A/A pair: ``first server`` or ``second server``. Empty for an arm in no pair."""
    if point.arm.setting not in twins:
        return ""
    return "second server" if point.arm.copy else "first server"


def _marks(point: Point) -> str:
    """Marks that follow the mean of a point."""
    return LIMITED_MARK * point.load_limited + REFUSED_MARK * bool(point.refusals)


def _number(of: Estimate | float | None, factor: float = 1.0) -> str:
    """Text of a value ÷ ``factor``; a dash without a value."""
    value = of.value if isinstance(of, Estimate) else of
    return NOTHING if value is None else number(value / factor)


def _busy(busy: Busy) -> str:
    """Words on the state of the machine at one time."""
    moment = f"{busy.at}: load {busy.load_1_min:g}, {busy.memory_available_mib:,.0f} MiB free"
    return f"{moment}, fixed work {number(busy.fixed_work_us)} µs, wake-up {number(busy.wake_up_us)} µs"


def _cell(text: str) -> str:
    """Text without the characters that would break a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")
