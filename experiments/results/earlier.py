"""Earlier whole runs of a study, with their headline ratios.

A headline ratio answers a study's main question. ``agree --keep`` reads the ratios from folders of results, and writes
them into one file. After that, the folders may be deleted. If two runs measured one version on one machine, only the
hour of the runs differs. Left out: the deviation of a ratio between runs (``judge/agreement.py``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.results.environment import Environment
from experiments.results.files import read_json, write_json

STUDIES = Path(__file__).resolve().parents[1] / "studies"

EARLIER_FILE = "earlier_runs.json"


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio of a comparison in a run: the mean natural logarithm over blocks, and the variance of this mean."""

    log: float
    variance: float


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """One whole run of a study: its start, version and machine, and its headline ratios."""

    began_at: str
    """Time of the run's start, ISO 8601 in UTC."""
    version: str
    """Digest of the fingerprint of the run's sources. An older recording has no fingerprint: its version is the commit.
    """
    cpu_model: str
    cores: int
    ratios: dict[str, Ratio]
    """Ratio of each comparison, by the comparison's name. Only comparisons of the family ``headline`` are kept."""

    def is_before(self, run: Environment) -> bool:
        """True if this run began before ``run``, on the same processor model with the same number of cores."""
        return self.began_at < run.before.at and (self.cpu_model, self.cores) == (run.cpu_model, run.cores)


def of_study(name: str) -> tuple[EarlierRun, ...]:
    """Earlier runs of a study, ascending by start. Empty for a study without a file of earlier runs. Raises UsageError
    for a file that cannot be read.
    """
    return load(STUDIES / name / EARLIER_FILE)


def load(file: Path) -> tuple[EarlierRun, ...]:
    """Runs of a file. Empty for a missing file. Raises UsageError for a file that cannot be read."""
    return read_json(file, tuple[EarlierRun, ...]) if file.exists() else ()


def save(file: Path, runs: Sequence[EarlierRun]) -> int:
    """Adds runs to a file, and returns the number of runs in the file. The file has each run once, ascending by start.

    Raises UsageError for a file that cannot be read, and OSError.
    """
    kept = {run.began_at: run for run in (*load(file), *runs)}
    ordered = [kept[at] for at in sorted(kept)]
    write_json(file, ordered, 1)
    return len(ordered)
