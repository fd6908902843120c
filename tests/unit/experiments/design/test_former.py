"""Factors under their former names."""

from experiments.design.former import FORMER, renewed
from experiments.design.setting import setting
from experiments.services.work import WORK_MS_MAX


def test_extra_us_is_cpu_ms() -> None:
    """``extra_us`` reads as ``cpu_ms`` in milliseconds. Other levels stay."""
    assert setting(extra_us=250, workers=2) == setting(cpu_ms=0.25, workers=2)
    assert renewed({"extra_us": 0.0, "workers": 2}) == {"cpu_ms": 0.0, "workers": 2}
    assert setting(extra_us=0.0) == setting()


def test_a_former_level_is_written_as_it_was() -> None:
    """A former level is written as it was, so that older rows are computed unchanged. Today the former maximum is
    allowed."""
    former = FORMER["extra_us"]
    assert [former.written(former.read(level)) for level in (0.0, 250.0, 100_000.0)] == [0.0, 250.0, 100_000.0]
    assert float(str(former.read(100_000.0))) <= WORK_MS_MAX
