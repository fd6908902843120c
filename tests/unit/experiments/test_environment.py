"""The environment: what is kept of the machine, and what is not."""

import dataclasses
import getpass
import json
import platform
import subprocess
from pathlib import Path

import pytest

from experiments import environment
from stock_service.rpc.errors import UsageError

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


def test_a_record_without_the_digest_of_changes_is_still_read(tmp_path: Path) -> None:
    """Older sweeps have none."""
    environment.save(HERE, tmp_path)
    file = tmp_path / "environment.json"
    values = json.loads(file.read_text())
    del values["changes"]
    file.write_text(json.dumps(values))
    assert environment.load(tmp_path) == dataclasses.replace(HERE, changes=None)


def test_two_different_changes_to_one_commit_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a file that git does not know, such as a folder of results, is no change."""
    monkeypatch.setattr(environment, "_REPOSITORY", tmp_path)
    git = ("git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "code.py").write_text("1\n")
    subprocess.run([*git, "add", "code.py"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    (tmp_path / "results.csv").write_text("")
    clean = environment.look()
    assert clean.dirty is False
    (tmp_path / "code.py").write_text("2\n")
    two = environment.look()
    (tmp_path / "code.py").write_text("3\n")
    three = environment.look()
    assert two.dirty
    assert three.dirty
    assert len({clean.changes, two.changes, three.changes}) == 3


def test_a_commit_differs_from_a_commit_with_changes() -> None:
    """What is resumed is compared by both."""
    assert dataclasses.replace(HERE, dirty=not HERE.dirty) != HERE
