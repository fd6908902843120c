"""Files of what is measured apart from sweeps: read back as written, and known where they were edited."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from experiments.results import alone, apart, cold
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.apart_seen import ALONE, COLD, cold_block, cold_run, repetition


def test_servers_alone_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """The plan and every repetition."""
    seen = [repetition(number, 130.5, (15, 17.25, 29), 0.0001) for number in (1, 2)]
    alone.save(tmp_path, ALONE, seen)
    assert alone.load(tmp_path) == (ALONE, tuple(seen))


def test_cold_runs_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """The plan and every block."""
    seen = [cold_block(1, [(0, cold_run(1)), (2, cold_run(100, errors={"unavailable": 3}))])]
    cold.save(tmp_path, COLD, seen)
    assert cold.load(tmp_path) == (COLD, tuple(seen))


@pytest.mark.parametrize(
    ("written", "instead"), [('"ready_ms": 130.5', '"ready_ms": 99.5'), ('"idle_s": 5.0', '"idle_s": 6.0')]
)
def test_an_edited_file_is_refused(tmp_path: Path, written: str, instead: str) -> None:
    """In what was seen, and in what was planned; another layout is no edit."""
    alone.save(tmp_path, ALONE, [repetition(1, 130.5, (15, 17, 29), 0.0)])
    file = tmp_path / alone.ALONE_FILE
    text = file.read_text()
    file.write_bytes(msgspec.json.format(text.encode(), indent=4))
    assert alone.load(tmp_path)[0] == ALONE
    assert text.count(written) == 1
    file.write_text(text.replace(written, instead))
    with pytest.raises(UsageError, match="edited"):
        alone.load(tmp_path)


def test_a_setting_of_an_older_file_has_new_factors_at_their_defaults(tmp_path: Path) -> None:
    """As sweeps read theirs."""
    alone.save(tmp_path, ALONE, [])
    file = tmp_path / alone.ALONE_FILE
    content: dict[str, Any] = msgspec.json.decode(file.read_bytes())["content"]
    for server in content["servers"]:
        del server["levels"]["cpu_ms"]
    apart.write(file, content)
    assert alone.load(tmp_path) == (ALONE, ())


@pytest.mark.parametrize("content", [b'{"format": 2}', b"{}", b"nothing", b'{"format": 1, "content": 3}'])
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """Another version, and other things."""
    (tmp_path / cold.COLD_FILE).write_bytes(content)
    with pytest.raises(UsageError, match=r"cold\.json"):
        cold.load(tmp_path)


def test_a_folder_without_one_says_so(tmp_path: Path) -> None:
    """By the folder's name."""
    with pytest.raises(UsageError, match=r"no alone\.json"):
        alone.load(tmp_path)
