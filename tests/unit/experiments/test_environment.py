"""The environment: what is kept of the machine, and what is not."""

import dataclasses
import getpass
import platform
from pathlib import Path

import pytest

from experiments import environment
from stock_service.errors import UsageError

HERE = environment.look()


def test_an_environment_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    """Before the sweep is done and after."""
    for kept in (HERE, environment.finished(HERE)):
        environment.save(kept, tmp_path)
        assert environment.load(tmp_path) == kept


def test_it_names_neither_host_nor_user_nor_path(tmp_path: Path) -> None:
    """It is meant to be shared."""
    environment.save(HERE, tmp_path)
    text = (tmp_path / "environment.json").read_text()
    values = [word.strip('",') for word in text.split()]
    assert platform.node() not in values
    assert getpass.getuser() not in values
    assert str(Path.home()) not in text
    assert str(Path(__file__).parents[3]) not in text


def test_it_says_on_what_it_ran() -> None:
    """Cores, Python, packages, commit, and how busy the machine was."""
    assert HERE.cores == len(environment.cores()) >= 1
    assert HERE.python.endswith(platform.python_version())
    assert HERE.packages["grpcio"][0].isdigit()
    assert len(HERE.commit) in (40, len(environment.UNKNOWN))
    assert HERE.before.cpu_busy_s > 0
    assert HERE.memory_mib > 100


def test_the_busy_accounts_only_grow() -> None:
    """What was busy before is still counted after."""
    after = environment.finished(HERE).after
    assert after is not None
    assert after.cpu_busy_s >= HERE.before.cpu_busy_s
    assert after.cpu_steal_s >= HERE.before.cpu_steal_s


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"before": 1, "after": null}'])
def test_a_file_that_is_no_environment_is_refused_by_name(tmp_path: Path, text: str) -> None:
    """In one line that says what it should be."""
    (tmp_path / "environment.json").write_text(text)
    with pytest.raises(UsageError, match=r"environment\.json"):
        environment.load(tmp_path)


def test_a_commit_differs_from_a_commit_with_changes() -> None:
    """What is resumed is compared by both."""
    assert dataclasses.replace(HERE, dirty=not HERE.dirty) != HERE
