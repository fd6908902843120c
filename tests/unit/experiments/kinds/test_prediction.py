"""Files of predictions."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.design.demands import Demands
from experiments.design.setting import setting
from experiments.kinds import prediction
from experiments.studies.pool_size.prediction import of_demands
from stock_service.rpc.errors import UsageError

AT = "2026-01-01T00:00:00+00:00"
DEMANDS = Demands(gil_s=0.001, free_s=0.0, wait_s=0.25, overhead_s=0.0)
ONE = of_demands(setting(workers=2, connections=4), DEMANDS, cores=1)
NEVER = of_demands(setting(workers=1, rate_hz=1000.0), DEMANDS, cores=1)


def test_it_reads_back_to_six_digits(tmp_path: Path) -> None:
    """Reading a prediction gives its time, and its numbers to six digits. An infinite time stays infinite. Writing the
    prediction again gives an equal file."""
    prediction.save(tmp_path, (ONE, NEVER), AT)
    written_at, (one, never) = prediction.load(tmp_path)
    assert written_at == AT
    assert one.throughput_hz == pytest.approx(ONE.throughput_hz, rel=1e-5)
    assert replace(one, throughput_hz=0, response_s=0, capacity_hz=0, knee_clients=0) == replace(
        ONE, throughput_hz=0, response_s=0, capacity_hz=0, knee_clients=0
    )
    assert never.response_s == float("inf")
    assert prediction.text((one, never), AT) == (tmp_path / prediction.FORETOLD_FILE).read_text()


def test_one_that_was_edited_is_refused(tmp_path: Path) -> None:
    """A prediction that was edited is refused."""
    prediction.save(tmp_path, (ONE,), AT)
    file = tmp_path / prediction.FORETOLD_FILE
    file.write_text(file.read_text().replace('"useful_workers": ', '"useful_workers": 1'))
    with pytest.raises(UsageError, match="edited"):
        prediction.load(tmp_path)
