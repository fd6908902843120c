"""Earlier runs: each run is kept once, and only earlier runs on an equal machine count."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.results import earlier, environment
from experiments.results.earlier import EarlierRun, Ratio
from experiments.studies import STUDIES
from stock_service.rpc.errors import UsageError

RUN = EarlierRun("2026-01-02T03:04:05+00:00", "v1", "EPYC", 2, {"one": Ratio(-1.4, 1e-4)})


def test_runs_are_kept_once_and_in_order(tmp_path: Path) -> None:
    """A file has each run once, in the order of time. A damaged file is refused."""
    file = tmp_path / earlier.EARLIER_FILE
    assert earlier.load(file) == ()
    first = replace(RUN, began_at="2026-01-01T00:00:00+00:00")
    assert earlier.save(file, [RUN]) == 1
    assert earlier.save(file, [first, RUN]) == 2
    assert earlier.load(file) == (first, RUN)
    file.write_text("[{")
    with pytest.raises(UsageError):
        earlier.load(file)


def test_a_run_knows_those_before_it_on_such_a_machine() -> None:
    """The same run, a later run, and a run on another processor are not earlier runs."""
    now = environment.look()
    here = replace(RUN, cpu_model=now.cpu_model, cores=now.cores)
    assert here.is_before(now)
    assert not replace(here, began_at=now.before.at).is_before(now)
    assert not replace(here, cores=now.cores + 1).is_before(now)
    assert not replace(here, cpu_model="another").is_before(now)


def test_the_runs_of_the_studies_can_be_read() -> None:
    """The kept runs of the studies can be read. One study has enough runs for a deviation."""
    assert {name for name in STUDIES if len(earlier.of_study(name)) > 10} == {"stock"}
