"""Factors under their former names."""

from experiments.design.former import FORMER, renewed
from experiments.design.setting import setting
from experiments.services.work import WORK_MS_MAX


def test_extra_us_is_cpu_ms() -> None:
    """In milliseconds; other levels stay as they are."""
    assert setting(extra_us=250, workers=2) == setting(cpu_ms=0.25, workers=2)
    assert renewed({"extra_us": 0.0, "workers": 2}) == {"cpu_ms": 0.0, "workers": 2}
    assert setting(extra_us=0.0) == setting()


def test_a_former_level_is_written_as_it_was() -> None:
    """So that older rows are computed as they stand; the highest of then is allowed now."""
    former = FORMER["extra_us"]
    assert [former.written(former.read(level)) for level in (0.0, 250.0, 100_000.0)] == [0.0, 250.0, 100_000.0]
    assert float(str(former.read(100_000.0))) <= WORK_MS_MAX
