"""The command ``index``: the folders that it takes, and the folders that it refuses in one line."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from experiments.commands import index
from experiments.commands.recording import read
from experiments.results.files import SWEEP_FILE, SWEPT, append_block, write_plan
from experiments.studies import STUDIES
from experiments.studies.by_clients import SUFFIX
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser
from tests.unit.experiments.blocks import blocks
from tests.unit.experiments.studies.stock.judgements import SCALE, planted

STOCK = STUDIES["stock"]


@cache
def left(part: str, number: int) -> Mapping[str, bytes]:
    """Files that a measurement leaves, by their names. They are made once."""
    sweep = STOCK.parts[part].sweep(SCALE)
    with TemporaryDirectory() as name:
        write_plan(Path(name), SWEPT, sweep)
        for each in blocks(sweep, number, planted()):
            append_block(Path(name), each)
        return {each.name: each.read_bytes() for each in Path(name).iterdir()}


def measured(folder: Path, part: str = "stock", number: int = 10) -> Path:
    """Makes a folder with a measured part of the stock study."""
    folder.mkdir(parents=True)
    for name, content in left(part, number).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.slow
def test_it_takes_a_folder_of_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The index takes a folder of ``run all``, says what is missing in it, and has paths from the page."""
    measured(tmp_path / "all" / "stock")
    options = ["--out", str(tmp_path / "page"), str(tmp_path / "all")]
    parser = Parser("index", "")
    index.add_options(parser)
    assert index.run(parser.parse_args(options)) == 0
    page, text = map(Path, capsys.readouterr().out.split())
    assert "## stock" in text.read_text()
    assert "- `server_cost`: " in text.read_text()
    assert page.read_text().startswith("<!doctype html>")
    assert "(../all/stock/figures" not in text.read_text()  # nothing was drawn there


@pytest.mark.slow
def test_a_part_decides_what_the_main_part_did_not(tmp_path: Path) -> None:
    """A part decides claims of its study that the main part did not."""
    folders = [measured(tmp_path / "stock"), measured(tmp_path / "locks", "lock_strategies")]
    (entry,) = index.made({folder: read(folder) for folder in folders}, tmp_path).entries
    assert sum("By the part `lock_strategies`" in claim.said for claim in entry.claims) == 2


@pytest.mark.slow
def test_servers_by_clients_stand_in_for_a_missing_main_part(tmp_path: Path) -> None:
    """``run all --clients`` measures them in place of the main part. Beside the main part they are a further part."""
    main = read(measured(tmp_path / "stock"))
    sweep = replace(main.judgement.sweep, part=f"stock{SUFFIX}")
    clients = replace(main, seen=replace(main.seen, main=replace(main.judgement, sweep=sweep)))
    (entry,) = index.made({tmp_path / "stock_clients": clients}, tmp_path).entries
    assert (entry.name, entry.content) == ("stock", clients)
    (entry,) = index.made({tmp_path / "stock_clients": clients, tmp_path / "stock": main}, tmp_path).entries
    assert entry.content is main


def test_what_makes_no_page_is_refused(tmp_path: Path) -> None:
    """A study twice, a part without its study, and a folder without results are refused."""
    one, other = measured(tmp_path / "one", number=1), measured(tmp_path / "other", number=1)
    part = measured(tmp_path / "part", "lock_strategies", number=1)
    for folders, said in (([one, other], "stock twice"), ([part], "parts of stock alone")):
        with pytest.raises(UsageError, match=said):
            index.made({folder: read(folder) for folder in folders}, tmp_path)
    (tmp_path / "empty").mkdir()
    parser = Parser("index", "")
    index.add_options(parser)
    with pytest.raises(UsageError, match=f"a folder without {SWEEP_FILE}"):
        index.run(parser.parse_args([str(tmp_path / "empty")]))
