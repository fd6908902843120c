"""Numbers of the study in words, and a comparison in its sentence. Left out: which are said, and in what order."""

from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement
from experiments.show.numbers import NOTHING, number, times_between
from experiments.show.sentences import ratio_sentence
from experiments.studies.greeter.sweeps import PEER

NOT_MEASURED = f"Not measured: the peer {PEER} was not built. `make peers` builds it."


def brief(judgement: Judgement, name: str, above: str, below: str) -> str:
    """A comparison in its sentence; why there is none, where there is none."""
    judged = judgement.judged.get(name)
    if judged is not None:
        return ratio_sentence(judged, above, below)
    declared = any(each.name == name for each in judgement.sweep.comparisons)
    return "No block of it counts; the report's gates say why." if declared else NOT_MEASURED


def milliseconds(of: Estimate) -> str:
    """Text in milliseconds: ``0.105 ms (0.102 to 0.108)``."""
    return f"{number(of.value / 1000)} ms{ends(of, 1000)}"


def per_second(of: Estimate) -> str:
    """Text of a rate: ``9,120/s (8,900 to 9,350)``."""
    return f"{number(of.value)}/s{ends(of, 1)}"


def microseconds(of: Estimate) -> str:
    """Text in microseconds: ``41.2 µs (40.9 to 41.6)``."""
    return f"{number(of.value)} µs{ends(of, 1)}"


def ends(of: Estimate, factor: float) -> str:
    """Interval in brackets, as `` (0.102 to 0.108)``; empty where there is none."""
    between = times_between(of, factor)
    return "" if between == NOTHING else f" ({between})"
