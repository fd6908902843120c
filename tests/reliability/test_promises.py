"""The command that tries the promises: its verdicts, and its page."""

from pathlib import Path

import pytest

from tests.reliability import __main__ as command
from tests.reliability import balancers, conformance, guided_fuzz, overload, real_clients
from tests.reliability.open_loop import Offered
from tests.reliability.promises import PROMISES, SHORT, Promise, Shortfall, excused
from tests.reliability.rows import Row, absent, worst

KEPT, FALLEN, KNOWN = Row("a", "0", "0", True), Row("b", "0", "7", False), Row("c", "0", "none", False)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with one known shortfall."""
    monkeypatch.setitem(SHORT, KNOWN.promise, Shortfall("not built"))


@pytest.mark.parametrize(("rows", "code"), [([KEPT], 0), ([KEPT, FALLEN], 1), ([KEPT, KNOWN], 0)])
def test_a_row_that_falls_short_unknown_fails(rows: list[Row], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that falls short gives exit code 1, unless its shortfall is known."""
    monkeypatch.setitem(PROMISES, "fair", Promise((lambda _minutes, _seed: rows,)))
    assert command.main(["fair", "--seconds", "--seed", "1"]) == code


@pytest.mark.parametrize(
    ("promise", "just", "worse"),
    [
        ("sockets at 2 times its capacity: goodput", 85.0, 5.0),
        ("grpc_static at 2 times its capacity: goodput", 75.0, 74.0),
        ("grpc_static at 2 times its capacity: p99 of refusals", 100.0, float("inf")),
        ("grpc_static at 10 times its capacity: p99 of what is answered", 100.0, 101.0),
        ("grpc_static: handlers that began after their deadline", 500, 1_000),
        ("sockets: reset in a reply", 40.0, 41.0),
    ],
)
def test_a_known_row_may_fall_so_far_and_no_further(
    promise: str, just: float, worse: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row past its bound is not excused. Neither is a row without a number, or a row that was past the bound in one
    round of two."""
    rounds = [[Row(promise, "0", "short", False, number)] for number in (just, worse, None)]
    turns = iter(rounds)
    monkeypatch.setitem(PROMISES, "fair", Promise((lambda _minutes, _seed: next(turns),)))
    assert [command.main(["fair", "--seconds"]) for _ in rounds] == [0, 1, 1]
    assert [command.verdict(row) for (row,) in rounds] == ["no, see below", "NO", "NO"]
    (found,) = worst(rounds[:2], excused)
    assert not excused(found)


def test_what_is_excused_has_a_reason_and_a_bound() -> None:
    """Every excuse has a reason and a bound. An absent tool has no bound, since nothing was tried."""
    programs = (conformance.H2SPEC, conformance.GO, guided_fuzz.ATHERIS, real_clients.GO_LOAD, *balancers.LACKING)
    tools = {absent(tool) for tool in programs}
    for promise, short in SHORT.items():
        assert short.reason
        bounded = short.at_least > float("-inf") or short.at_most < float("inf")
        assert bounded != (promise in tools or promise == KNOWN.promise), promise
        assert not bounded or "is not excused" in str(short)


@pytest.mark.parametrize(
    ("good", "took_s", "known"), [(90, 0.09, (True, True)), (84, 0.11, (False, False)), (5, 0.2, (False, False))]
)
def test_the_rows_of_an_overload_carry_their_figures(good: int, took_s: float, known: tuple[bool, bool]) -> None:
    """Rows of an overload have figures in the units of the bounds: percent, and milliseconds."""
    offered = Offered(due=200, good=good, answered_s=[took_s] * 10, refused_s=[took_s] * 10)
    block = overload.block_of(offered, 1.0, (100.0, 100.0), 100.0)
    goodput = overload.rows_of("sockets at 2 times its capacity", [block], 0.95, 2.0)[0]
    refusals = overload.refusals("grpc_static at 2 times its capacity", [block], has_goal=True)
    assert (goodput.passed, refusals.passed) == (False, False)
    assert (excused(goodput), excused(refusals)) == known


def test_who_comes_back_slowly_lowers_no_peak() -> None:
    """A server that has lost half of its speed for ever fails in every block: the peak is that of a rested server."""
    offered = Offered(due=100, good=50)
    blocks = [overload.block_of(offered, 1.0, (100.0, 100.0), back_hz) for back_hz in (100.0, 50.0, 50.0)]
    assert [(block.goodput, block.back) for block in blocks] == [(0.5, 1.0), (0.5, 0.5), (0.5, 0.5)]
    back = overload.rows_of("a", blocks, 0.5, 1.0)[-1]
    assert (back.promise, back.passed) == ("a: back within 1 s", False)


def test_a_host_that_slows_down_in_a_block_lowers_no_goodput() -> None:
    """Half of the requests, in handlers that take twice as long, fill an equal share of a core."""
    calm = overload.block_of(Offered(due=100, good=100), 1.0, (0.5, 0.5), 0.5, 0.005)
    slow = overload.block_of(Offered(due=100, good=50), 1.0, (0.5, 0.5), 0.5, 0.01)
    assert calm.goodput == slow.goodput == 1.0
    assert overload.Ran(30, 0, 12 * 10**9).mean_s(overload.Ran(10, 0, 2 * 10**9)) == 0.5


def test_a_load_that_was_late_itself_is_offered_again_at_a_lower_rate() -> None:
    """A late load tells nothing about the server, and is offered again at a lower rate. The last try is reported in any
    case."""

    def offered(rate_hz: float) -> real_clients.Report:
        return real_clients.Report(round(rate_hz), 1.0, late_us_p99=0.0 if rate_hz < 80 else 341_000.0)

    rate_hz, seen = real_clients.in_time(offered, 100.0)
    assert (round(rate_hz, 6), seen.good) == (72.25, 72)
    assert real_clients.in_time(offered, 1e6)[1].late_us_p99 > real_clients.LATE_US_MAX


def test_a_server_that_keeps_a_punctual_load_waiting_is_not_excused() -> None:
    """Calls without room were never sent: the server did not answer the calls before them."""
    overloaded = real_clients.Report(1, 1.0, never_sent=99)
    assert real_clients.in_time(lambda _: overloaded, 100.0) == (100.0, overloaded)


def test_one_call_refused_for_its_metadata_is_one_too_many() -> None:
    """One failed call of ten thousand is too many, and so is a call that was not made. A row without a goal only
    states."""
    whole, refused = real_clients.Report(10_000, 9.0), real_clients.Report(10_000, 9.0, {"ResourceExhausted": 1})
    made = (whole, refused, real_clients.Report(9_999, 9.0))
    rows = [real_clients.metadata_row("a", each, 10_000, has_goal=True) for each in made]
    assert [row.passed for row in rows] == [True, False, False]
    assert real_clients.metadata_row("a", refused, 10_000, has_goal=False).states


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "passed"), [("grpc_static", True), ("grpc", False)])
def test_a_server_that_refuses_honest_metadata_falls_short(transport: str, passed: bool) -> None:
    """A server that refuses honest metadata falls short, as grpcio's own server does with half of it."""
    with real_clients.serving(transport) as address:
        row = real_clients.metadata_row("a", real_clients.with_metadata(address, 40, 4), 40, has_goal=True)
    assert row.passed is passed


def test_what_goes_late_or_polite_clients_lack_falls_short() -> None:
    """Shares of the peak, of a fifth of all answers and of the polite clients' calls fall short under their goals."""
    said = '{"calls": 90, "good": 80, "seconds": 2.0, "errors": {"Aborted": 5}, "never_sent": 7, "late_us_p99": 3.0}'
    polite = real_clients.go_report(said)
    assert (polite.made, polite.good_hz, polite.errors) == (102, 40.0, {"Aborted": 5, "late": 10})
    assert polite.was_in_time
    rows = real_clients.fair_rows("a", polite, 60.0, has_goal=True)
    assert [(row.figure, row.passed) for row in rows] == [("200%", True), ("78.43% of 102", False)]
    assert not real_clients.fair_rows("a", polite, 400.0, has_goal=True)[0].passed
    kept, short = (real_clients.overload_row("a", shares, 0.5) for shares in ([0.4, 0.6, 0.5], [0.4, 0.4, 0.9]))
    assert (kept.figure, kept.passed) == ("50%; 40% to 60% in 3 blocks", True)
    assert (short.figure, short.passed) == ("40%; 40% to 90% in 3 blocks", False)


def test_a_check_that_breaks_is_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A check that raises an error fails the command, and a row has the reason."""

    def breaks(_minutes: bool, _seed: int) -> list[Row]:
        raise ValueError("no such thing")

    monkeypatch.setitem(PROMISES, "fair", Promise((breaks,)))
    assert command.main(["fair", "--seconds"]) == 1
    assert "ValueError: no such thing" in capsys.readouterr().out


def test_what_an_absent_tool_would_try_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row of each absent tool says how to get the tool. The command still succeeds, since the service is not at
    fault."""
    monkeypatch.setattr(conformance, "TOOLS", tmp_path)
    monkeypatch.setattr(guided_fuzz, "find_spec", lambda _: None)
    monkeypatch.setattr(real_clients, "is_built", lambda _: False)
    rows = conformance.check(False) + guided_fuzz.check(False, 1) + real_clients.check(False)
    assert [row.passed for row in rows] == [False] * 4
    advice = ("make go-tools", "make go-tools", "make check-reliability installs it", "skipped: make peers")
    assert all(said in row.figure for said, row in zip(advice, rows, strict=True))
    monkeypatch.setitem(PROMISES, "conformance", Promise((lambda _minutes, _seed: rows,)))
    assert command.main(["conformance", "--seconds"]) == 0
    assert capsys.readouterr().out.count("| NO") == 4


def test_of_several_rounds_the_worst_counts() -> None:
    """A row that fell short once has fallen short, and says how often it was kept."""
    (row,) = worst([[KEPT], [Row("a", "0", "3", False)], [KEPT]])
    assert row == Row("a", "0", "3 (kept in 2 of 3 rounds)", False)


def page(rows: list[Row], took_s: float = 70.0) -> str:
    """The page where each promise has these rows."""
    found = dict.fromkeys(PROMISES, rows)
    return command.page(found, dict.fromkeys(PROMISES, 7.2), took_s, "make check-reliability", 5)


def test_a_row_that_only_states_is_neither_kept_nor_short() -> None:
    """A row that only states has a dash for its goal and its result, and is not counted with the other rows."""
    row = Row.stated("beside", "7%")
    assert str(row) == "beside | – | 7% | –"
    text = page([KEPT, row])
    assert text.count("| beside | – | 7% | – |") == len(PROMISES)
    assert f"{len(PROMISES)} of {len(PROMISES)} rows are kept" in text
    assert worst([[row], [row]]) == [Row.stated("beside", "7% (stated in 2 of 2 rounds)")]


def test_the_page_has_every_row_and_reason() -> None:
    """The page marks each shortfall, and has the reason of each known shortfall. Then come the seconds of each
    promise."""
    text = page([KEPT, FALLEN, KNOWN])
    assert text.count("| a | 0 | 0 | yes |") == len(PROMISES)
    assert "| b | 0 | 7 | NO |" in text
    assert "| fair | 7 |" in text
    assert text.endswith("| all, of 15 minutes allowed | 70 |\n")
    assert f"- {KNOWN.promise}: {SHORT[KNOWN.promise]}." in text
    assert text.count("- b: 7, to reach 0.") == len(PROMISES)
    assert page([KEPT], 901.0).endswith("| all, of 15 minutes allowed | 901: TOO LONG |\n")
