"""Words and values that the study's answers, claims and figures share.

``show.sentences`` has the sentence of each verdict. The modules that use this module choose the sentences and their
order.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from experiments.design.arms import Arm, Comparison
from experiments.design.setting import Setting
from experiments.judge import gates
from experiments.judge.points import Point, points
from experiments.judge.steps import SAID, Step
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.observed import ALL, Block, Window
from experiments.results.stages import StageSummary
from experiments.show.figures import style
from experiments.show.numbers import counted, number, percent, ratio_with_ends
from experiments.show.sentences import listed, ratio_sentence
from experiments.studies.stock.sweeps import clients_of

SERVERS = {"grpc_static": "our own gRPC server", "grpc": "grpcio"}
"""Names of the implementations of gRPC, by transport. Sockets have the label of their transport."""


def told(judgement: Judgement, name: str, above: str, below: str) -> str:
    """Sentence on a comparison; the verdict decides the words. ``above`` and ``below``: texts for the two arms, inside
    a sentence."""
    judged = judgement.judged.get(name)
    if judged is None:
        return f"Not known: {above}, compared with {below}. {absence(judgement, name)}"
    return ratio_sentence(judged, above, below)


def grown(judgement: Judgement, name: str, where: str) -> str:
    """Sentence on the growth of latency from fewer clients to more. ``where``: text that follows the number of clients,
    such as ``on sockets``."""
    comparison = declared(judgement, name)
    if comparison is None:
        return "Not known: growth needs two numbers of clients, and this sweep has one."
    most, few = (clients_of(arm.connections) for arm in (comparison.above, comparison.below))
    return told(judgement, name, f"{most} {where}", few)


def brief(judgement: Judgement, name: str) -> str:
    """Text of a comparison for a list: its ratio, or the reason why it has no value."""
    judged = judgement.judged.get(name)
    return absence(judgement, name) if judged is None else listed(judged)


def absence(judgement: Judgement, name: str) -> str:
    """Sentence on the reason why a comparison has no value."""
    comparison = declared(judgement, name)
    if comparison is None:
        return "This sweep has too few numbers of clients for this comparison."
    if not judgement.blocks:
        return "No block has been run."
    refused = [each for block in judgement.blocks for each in gates.block_refusals(judgement.sweep, block, comparison)]
    if refused:
        return f"Gate {refused[0].gate} left out the blocks ({gates.NAMES[refused[0].gate]}): {refused[0].said}."
    return "No two neighbouring slices of both servers have replies."


def mean_us(judgement: Judgement, arm: Arm) -> float | None:
    """Geometric mean over blocks of an arm's mean latency in µs, as in figures. None without a value, and where a gate
    refuses the arm."""
    means = (point.mean_us for point in points_of(judgement, [arm]) if not point.refusals)
    return next((each.value for each in means if each is not None), None)


def by_clients(judgement: Judgement, base: Setting, factor: str = "clients") -> list[Arm]:
    """Arms that differ from a setting in ``factor`` alone, in ascending order of ``factor``. ``factor``: ``clients`` or
    ``connections``."""
    own = (arm for arm in judgement.sweep.arms if arm.setting == base.but(**{factor: arm.setting[factor]}))
    return sorted((arm for arm in own if not arm.copy), key=lambda arm: arm.connections)


def by_transport(arms: Iterable[Arm]) -> list[list[Arm]]:
    """Lists of arms, one for each transport. The order of the arms is kept."""
    own: dict[str, list[Arm]] = {}
    for arm in arms:
        own.setdefault(arm.setting.text("transport"), []).append(arm)
    return list(own.values())


def points_of(judgement: Judgement, arms: Iterable[Arm], request: str = ALL) -> list[Point]:
    """Measured points of the given arms for a request type, in the order of the arms. An arm without a measured point
    is left out."""
    found = points(judgement.sweep, judgement.blocks)
    return [found[arm, request] for arm in arms if (arm, request) in found]


def _counted(judgement: Judgement, arm: Arm) -> Iterator[Block]:
    """Blocks that no gate leaves out for an arm. Empty for an arm that the sweep lacks."""
    if arm in judgement.sweep.arms:
        yield from (each for each in judgement.blocks if not gates.arm_refusals(judgement.sweep, each, arm))


def counted_windows(judgement: Judgement, arm: Arm) -> list[Window]:
    """Windows of an arm in the blocks that no gate leaves out."""
    place = judgement.sweep.places[arm]
    return [window for block in _counted(judgement, arm) for window in block.arms[place].windows]


def counted_stages(judgement: Judgement, arm: Arm, request: str = ALL) -> dict[int, StageSummary]:
    """Stages that the server stamped for an arm and a request type, by the number of the block. Blocks that a gate
    leaves out have no entry."""
    places = judgement.sweep.places
    seen = {block.number: block.arms[places[arm]].stages for block in _counted(judgement, arm)}
    return {number: stages[request] for number, stages in seen.items() if request in stages}


def threads_ran(staged: Judgement, arm: Arm) -> int | None:
    """Largest number of threads that answered an arm's requests in a block. None where the server stamped nothing."""
    return max((each.threads for each in counted_stages(staged, arm).values()), default=None)


def at_work(staged: Judgement, arm: Arm) -> float | None:
    """Average number of threads that held a request at the same time. None where the server stamped nothing, or where
    no latency is known.

    By Little's law this average is a product: the number of clients × the share of the latency in which a thread holds
    the request.
    """
    held_us = [each.total.mean_us - each.queue_wait.mean_us for each in counted_stages(staged, arm).values()]
    latency_us = mean_us(staged, arm)
    return arm.connections * fmean(held_us) / latency_us if held_us and latency_us else None


def declared(judgement: Judgement, name: str) -> Comparison | None:
    """Comparison with this name in the sweep, with a value or without. None where the sweep has no such comparison."""
    return next((each for each in judgement.sweep.comparisons if each.name == name), None)


def found(judgement: Judgement, *names: str) -> tuple[Judged, ...]:
    """Comparisons with these names that have a value."""
    return tuple(judgement.judged[name] for name in names if name in judgement.judged)


def step_by_step(own: Sequence[Step]) -> str:
    """Sentence with the ratio of every step: ``Step by step: 2 ÷ 1 client 1.30 (1.20 to 1.40).``"""
    shown = (
        f"{each.above.connections} ÷ {clients_of(each.below.connections)} {ratio_with_ends(each.ratio)}" for each in own
    )
    return f"Step by step: {', '.join(shown)}."


def contrary(judgement: Judgement, others: Sequence[Step], missing: int) -> str:
    """Sentences on the steps that contradict a claim, one for each direction. A further sentence has the number of
    steps without a value. A step is the change from one number of clients to the next.

    ``others``: the contradicting steps. The sentences name these steps only where the judgement is at a look. Empty
    without contradicting or missing steps.
    """
    where: dict[Verdict, list[str]] = {}
    for each in others if judgement.look is not None else ():
        ends = f"from {each.below.connections} to {each.above.connections} clients (ratio {number(each.ratio.value)})"
        where.setdefault(each.verdict(judgement), []).append(ends)
    said = "".join(f" Latency {SAID[of]} {', '.join(places)}." for of, places in where.items())
    lacks = missing > 0 and bool(judgement.blocks)
    return said + f" The gates left no block for {counted(missing, 'step')}." * lacks


def label(arm: Arm) -> str:
    """Label of the arm's transport, as in figures."""
    return style.label(arm.setting.text("transport"))


def executors(judgement: Judgement, name: str) -> tuple[str, str]:
    """Texts for the executors of a comparison's two arms, as recorded: ``the static pool``. Both texts are ``one
    executor`` where the sweep has no such comparison.
    """
    comparison = declared(judgement, name)
    arms = () if comparison is None else (comparison.above, comparison.below)
    above, below = (f"the {arm.setting.executor}" for arm in arms) if arms else ("one executor",) * 2
    return above, below


def server(arm: Arm) -> str:
    """Name of the arm's server: ``sockets``, ``our own gRPC server``, ``grpcio``."""
    return SERVERS.get(arm.setting.text("transport"), label(arm))


def confidence(judgement: Judgement) -> str:
    """Sentence on the interval in brackets behind a ratio."""
    return f"The brackets contain the ratio's {percent(judgement.confidence)} interval over blocks."
