"""The limits of a load plan, and of the command line that makes one."""

import dataclasses
import json
from pathlib import Path

import pytest

from clients.load import __main__ as command
from clients.load.plan import CLIENTS_MAX, CONNECTIONS_MAX, LoadPlan
from stock_service.errors import UsageError

PLAN = LoadPlan("sockets", ("127.0.0.1", 1), 1, {"lookup": 1.0}, ("GameStart",), 0.0, 1.0)


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"transport": "pigeon"}, "--transport"),
        ({"clients": 0}, "--clients"),
        ({"clients": CLIENTS_MAX + 1}, "--clients"),
        ({"connections_per_client": 0}, "--connections-per-client"),
        ({"clients": 2, "connections_per_client": CONNECTIONS_MAX}, "--connections-per-client"),
        ({"connection": "sometimes"}, "--connection"),
        ({"warm_up_s": -1.0}, "--warm-up-s"),
        ({"warm_up_s": float("nan")}, "--warm-up-s"),
        ({"duration_s": 0.0}, "--duration-s"),
        ({"duration_s": 3601.0}, "--duration-s"),
        ({"timeout_s": 61.0}, "--timeout-s"),
        ({"quantity": 0}, "--quantity"),
        ({"stocks": ()}, "--stocks"),
        ({"mix": {}}, "--mix"),
        ({"mix": {"echo": 1.0}}, "--mix"),
        ({"mix": {"lookup": 0.0}}, "--mix"),
        ({"mix": {"lookup": float("inf")}}, "--mix"),
    ],
)
def test_a_plan_outside_the_limits_is_refused(change: dict[str, object], option: str) -> None:
    """Where it is made, naming the option of the command line."""
    with pytest.raises(UsageError) as refused:
        dataclasses.replace(PLAN, **change)  # type: ignore[arg-type]
    assert refused.value.option == option


@pytest.mark.parametrize("connections", [1, 16, 512, CONNECTIONS_MAX])
def test_memory_for_records_is_bounded(connections: int) -> None:
    """However many connections there are, all together hold 17 bytes × 2^26 at the very most; up to 512, × 2^23."""
    plan = dataclasses.replace(PLAN, connections_per_client=connections)
    assert plan.records_max * plan.connections <= (2**23 if connections <= 512 else 2**26)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--clients 0", "--clients: got '0', allowed: a whole number from 1 to 512"),
        ("--clients 1 x", "--clients: got 'x'"),
        ("--clients 513", "--clients: got '513'"),
        ("--mix sell", "--mix: got 'sell', allowed: each of lookup, trade, update"),
        ("--mix lookup=0", "--mix: got 'lookup=0'"),
        ("--mix lookup=-1", "--mix: got 'lookup=-1'"),
        ("--mix lookup=nan", "--mix: got 'lookup=nan'"),
        ("--mix lookup,lookup", "--mix: got 'lookup,lookup'"),
        ("--mix lookup=x", "--mix: got 'lookup=x'"),
        ("--cpus 4096", "--cpus: got '4096'"),
        ("--cpus -1", "--cpus"),
        ("--json /no/such/folder/file.json", "--json: got '/no/such/folder/file.json'"),
        ("--json /", "--json: got '/'"),
        ("--duration-s nan", "--duration-s: got 'nan'"),
        ("--duration-s 1e9", "--duration-s: got '1e9'"),
        ("--warm-up-s -1", "--warm-up-s"),
        ("--timeout-s 100", "--timeout-s: got '100'"),
        ("--connections-per-client 4096 --clients 1 2", "--connections-per-client: got 4096"),
        ("--connection never", "--connection: invalid choice: 'never'"),
        ("--transport pigeon", "--transport: invalid choice: 'pigeon'"),
        ("--address localhost", "--address: got 'localhost'"),
        ("--quantity 0", "--quantity: got '0'"),
        ("--seed 1.5", "--seed: got '1.5'"),
        ("--stocks a\tb", "--stocks"),
        ("--durations 5", "unrecognized arguments"),
    ],
)
def test_bad_input_is_one_line_that_names_it(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, exit code 2, before anything is started."""
    with pytest.raises(SystemExit) as ended:
        command.main(arguments.split(" "))
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert said in printed.err


def test_a_mix_is_names_with_weights() -> None:
    """A weight left out is 1."""
    assert command.mix("lookup") == {"lookup": 1.0}
    assert command.mix("lookup=0.5,trade=1.5") == {"lookup": 0.5, "trade": 1.5}
    assert command.mix("update,trade=2") == {"update": 1.0, "trade": 2.0}


def test_a_json_file_is_replaced_whole(tmp_path: Path) -> None:
    """Nothing else is left in its folder, and what stood there before is gone."""
    file = tmp_path / "results.json"
    file.write_text("before")
    command.write_json(file, [])
    assert json.loads(file.read_text()) == {"format": 1, "results": []}
    assert list(tmp_path.iterdir()) == [file]
