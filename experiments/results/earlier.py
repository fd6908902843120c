"""Earlier whole runs of a study: the headline ratios of each run, kept so that the deviation between runs is known.

``agree --keep`` writes them from folders of results, which need not be kept themselves. Runs of one version on one
machine differ in their time alone. Left out: the statistics over runs, which ``judge/agreement.py`` has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from experiments.results.environment import Environment
from experiments.results.files import AS_WRITTEN, damage, write_at_once
from stock_service.rpc.errors import UsageError

STUDIES = Path(__file__).resolve().parents[1] / "studies"

EARLIER_FILE = "earlier_runs.json"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A comparison's ratio in a run: its logarithm, and the variance of the logarithm over blocks."""

    log: float
    variance: float


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A whole run."""

    began_at: str
    """Start of the run, ISO 8601 in UTC."""
    version: str
    """Fingerprint of its sources, or its commit where it was recorded before there were fingerprints."""
    cpu_model: str
    cores: int
    ratios: dict[str, Ratio]
    """Ratios, by the names of the headline comparisons."""

    def is_before(self, run: Environment) -> bool:
        """True where this run was made earlier than another run, on such a machine."""
        return self.began_at < run.before.at and (self.cpu_model, self.cores) == (run.cpu_model, run.cores)


def of_study(name: str) -> tuple[EarlierRun, ...]:
    """Known runs of a study, by their start; empty where none are kept. Raises UsageError."""
    return load(STUDIES / name / EARLIER_FILE)


def load(file: Path) -> tuple[EarlierRun, ...]:
    """Runs that a file keeps; empty where there is no such file. UsageError for a file that cannot be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[EarlierRun, ...])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise UsageError(str(file), damage(error), AS_WRITTEN) from error


def save(file: Path, runs: Sequence[EarlierRun]) -> int:
    """Adds runs to those of the file, each once. Returns the number of runs in the file then. Raises OSError."""
    kept = {run.began_at: run for run in (*load(file), *runs)}
    ordered = [kept[at] for at in sorted(kept)]
    write_at_once(file, msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
    return len(ordered)
