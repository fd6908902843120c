"""Words that the study's sentences share: a comparison told by its name, a claim's numbers, and why there are none.

``show.sentences`` says what a verdict allows. Left out: which sentences are said, and in what order.
"""

from collections.abc import Sequence
from statistics import fmean

from experiments.design.arms import Arm, Comparison
from experiments.design.setting import Setting
from experiments.judge import gates, ratios
from experiments.judge.points import stages
from experiments.judge.steps import SAID, Step
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.observed import ALL, Window
from experiments.results.stages import StageSummary
from experiments.show.figures import style
from experiments.show.numbers import percent, ratio_words
from experiments.show.sentences import listed, ratio_sentence
from experiments.studies.stock.sweeps import clients_of

SERVERS = {"grpc_static": "our own gRPC server", "grpc": "grpcio"}
"""Names of the implementations of gRPC; sockets are called by their label."""


def told(judgement: Judgement, name: str, above: str, below: str) -> str:
    """One comparison, as its verdict has it; ``above`` and ``below`` are words within a sentence."""
    judged = judgement.judged.get(name)
    if judged is None:
        return f"Not known: {above} beside {below}. {absence(judgement, name)}"
    return ratio_sentence(judged, above, below)


def brief(judgement: Judgement, name: str) -> str:
    """A comparison for a list; why there is none, where there is none."""
    judged = judgement.judged.get(name)
    return absence(judgement, name) if judged is None else listed(judged)


def absence(judgement: Judgement, name: str) -> str:
    """Sentence on why a comparison has no value."""
    comparison = declared(judgement, name)
    if comparison is None:
        return "This sweep has too few numbers of clients for it."
    if not judgement.blocks:
        return "No block has been run."
    refused = [each for block in judgement.blocks for each in gates.block_refusals(judgement.sweep, block, comparison)]
    if refused:
        return f"Gate {refused[0].gate} left out its blocks ({gates.NAMES[refused[0].gate]}): {refused[0].said}."
    return "No two slices of it were answered side by side."


def mean_us(judgement: Judgement, arm: Arm) -> float | None:
    """The mean over blocks of an arm's mean latency, as figures have it; None where it has none, or a gate objects."""
    sweep = judgement.sweep
    if arm not in sweep.arms or any(any(gates.arm_refusals(sweep, each, arm)) for each in judgement.blocks):
        return None
    means = [ratios.arm_mean_us(sweep, block, sweep.arms.index(arm), ALL) for block in judgement.blocks]
    seen = [mean for mean in means if mean is not None]
    return sum(seen) / len(seen) if seen else None


def by_clients(judgement: Judgement, base: Setting, factor: str = "clients") -> list[Arm]:
    """Arms that differ from this setting in their clients alone, or in their connections, by ascending number."""
    own = (arm for arm in judgement.sweep.arms if arm.setting == base.but(**{factor: arm.setting[factor]}))
    return sorted((arm for arm in own if not arm.copy), key=lambda arm: arm.connections)


def counted_windows(judgement: Judgement, arm: Arm) -> list[Window]:
    """An arm's windows, of the blocks that no gate leaves out."""
    place = judgement.sweep.arms.index(arm)
    blocks = (each for each in judgement.blocks if not any(gates.arm_refusals(judgement.sweep, each, arm)))
    return [window for block in blocks for window in block.arms[place].windows]


def threads_ran(staged: Judgement, arm: Arm) -> int | None:
    """Most threads that answered an arm's requests in a block, as the server stamped them; None: it did not."""
    return max((each.threads for each in _stages(staged, arm)), default=None)


def at_work(staged: Judgement, arm: Arm) -> float | None:
    """Threads that held a request at once, on average: the clients × the share of a latency from a thread's beginning
    with the request to its end (Little's law). None where the server stamped nothing."""
    held_us = [each.total.mean_us - each.queue_wait.mean_us for each in _stages(staged, arm)]
    latency_us = mean_us(staged, arm)
    return arm.connections * fmean(held_us) / latency_us if held_us and latency_us else None


def _stages(staged: Judgement, arm: Arm) -> Sequence[StageSummary]:
    return stages(staged.sweep, staged.blocks, arm).get(ALL, ()) if arm in staged.sweep.arms else ()


def declared(judgement: Judgement, name: str) -> Comparison | None:
    """The comparison of this name, whether or not it has a value."""
    return next((each for each in judgement.sweep.comparisons if each.name == name), None)


def found(judgement: Judgement, *names: str) -> tuple[Judged, ...]:
    """The comparisons of these names that have a value."""
    return tuple(judgement.judged[name] for name in names if name in judgement.judged)


def step_by_step(own: Sequence[Step]) -> str:
    """Sentence on every step: ``Step by step: 2 ÷ 1 client 1.30 (1.20 to 1.40).``"""
    shown = [
        (f"{each.above.connections} ÷ {clients_of(each.below.connections)}", ratio_words(each.ratio)) for each in own
    ]
    return f"Step by step: {', '.join(f'{name} {value} ({ends})' for name, (value, ends) in shown)}."


def contrary(judgement: Judgement, own: Sequence[Step]) -> str:
    """Steps that do not bear a claim out, in a sentence for each direction; empty without any, and at no look."""
    where: dict[Verdict, list[str]] = {}
    for each in own if judgement.look is not None else ():
        ends = f"from {each.below.connections} to {each.above.connections}"
        where.setdefault(each.verdict(judgement), []).append(ends)
    return "".join(f" Latency {SAID[of]} {', '.join(places)} clients." for of, places in where.items())


def label(arm: Arm) -> str:
    """Label of the arm's transport for people."""
    return style.label(arm.setting.text("transport"))


def executors(judgement: Judgement, name: str) -> tuple[str, str]:
    """Executors above and below in a comparison: ``the static pool``; ``one executor`` where there is none."""
    comparison = declared(judgement, name)
    arms = () if comparison is None else (comparison.above, comparison.below)
    above, below = (f"the {arm.setting.executor}" for arm in arms) if arms else ("one executor",) * 2
    return above, below


def server(arm: Arm) -> str:
    """Name of the implementation of its transport: ``sockets``, ``our own gRPC server``, ``grpcio``."""
    return SERVERS.get(arm.setting.text("transport"), label(arm))


def confidence(judgement: Judgement) -> str:
    """Sentence on the interval of a ratio."""
    return f"Behind it stands its {percent(judgement.confidence)} interval over blocks."
