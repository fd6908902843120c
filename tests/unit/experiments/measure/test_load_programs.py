"""Load programs: commands and reports of each program, and failures."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.measure import load_programs
from experiments.measure.load_programs import Ask, LoadProgram, Reading
from experiments.measure.programs import ProgramFailed, finished
from experiments.peers import Absent
from experiments.selfcheck.load import lookups
from stock_service.trading.service import LOOKUP

ASK = Ask(("127.0.0.1", 1), LOOKUP, b"\x0a\x01A", connections=2, duration_s=1.0, warm_up_s=0.5, cpus=None)


def program(folder: Path, body: str) -> Path:
    """A Python program instead of a client. Its body may read ``arguments``."""
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\nimport json, sys\narguments = sys.argv[1:]\n{body}\n")
    path.chmod(0o755)
    return path


def detail(second: float, latency_ms: float, status: str = "OK") -> dict[str, object]:
    """A request in the report of ghz."""
    whole, thousandths = divmod(round(second * 1000), 1000)
    moment = f"2024-02-29T23:59:{whole:02}.{thousandths:03}000123Z"
    return {"timestamp": moment, "latency": int(latency_ms * 1e6), "error": "", "status": status}


def ghz(folder: Path, details: list[dict[str, object]] | None) -> LoadProgram:
    """A program that reports these requests like ghz."""
    return LoadProgram(program(folder, f"print(json.dumps({ {'details': details}!r}))"), load_programs.ghz)


def test_a_program_gets_an_address_that_it_can_read() -> None:
    """An IPv6 address has brackets, as URLs and Go's dialer ask for."""
    assert replace(ASK, address=("::1", 1)).at == "[::1]:1"


def test_ghz_is_read_after_its_warm_up(tmp_path: Path) -> None:
    """Percentiles and throughput of ghz leave out the warm-up. A failed request is counted without its time. The report
    may have no requests."""
    details = [detail(0.0, 90), detail(0.4, 90), *(detail(1.0 + 0.1 * place, 1 + place) for place in range(10))]
    reading = ghz(tmp_path, details).load(ASK)
    assert reading.requests == 10
    assert reading.throughput_hz == pytest.approx(10 / 0.91)
    assert reading.p50_us == pytest.approx(5500.0)
    assert reading.p99_us == pytest.approx(9910.0)
    reading = ghz(tmp_path, [detail(1, 1), detail(2, 1), detail(2.1, 90, "Unavailable")]).load(ASK)
    assert (reading.requests, reading.errors) == (1, 1)
    assert reading.p99_us == pytest.approx(1000.0)
    assert ghz(tmp_path, []).load(ASK).requests == ghz(tmp_path, None).load(ASK).requests == 0


def h2load(folder: Path, lines: list[str]) -> LoadProgram:
    """A program that logs these lines like h2load."""
    body = f"open(arguments[arguments.index('--log-file') + 1], 'w').write({chr(10).join(lines)!r} + chr(10))"
    return LoadProgram(program(folder, body), load_programs.h2load)


def test_h2load_is_read_from_its_log(tmp_path: Path) -> None:
    """The log of h2load gives all times after the warm-up. A status other than 200 is a failure."""
    lines = ["1000000\t200\t77", *(f"{1_600_000 + 1000 * place}\t200\t{100 + place}" for place in range(11))]
    reading = h2load(tmp_path, lines).load(ASK)
    assert reading.requests == 11
    assert reading.p50_us == pytest.approx(105.0)
    assert reading.throughput_hz == pytest.approx(11 / 0.01011)
    assert reading.times is not None
    assert (reading.times.count, reading.times.sum_ns) == (11, 11 * 105_000)
    lines = ["1000000\t200\t77", "1600000\t-1\t5", "1700000\t200\t9"]
    reading = h2load(tmp_path, lines).load(ASK)
    assert (reading.requests, reading.errors) == (1, 1)
    none = h2load(tmp_path, lines[:2]).load(ASK)
    assert (none.requests, none.errors, none.throughput_hz) == (0, 1, 0)
    assert h2load(tmp_path, []).load(ASK).requests == 0


REPORT = {"requests": 5, "errors": 0, "throughput_hz": 5.0, "p50_us": 7.0, "p99_us": 9.0}


@pytest.mark.slow  # many processes
@pytest.mark.parametrize("kind", [load_programs.go, load_programs.c])
def test_our_own_programs_say_it_themselves(kind: Callable[[Path, Ask], Reading], tmp_path: Path) -> None:
    """Our programs report one line of JSON, and the C program writes its times to a file. Other text is refused."""
    import_times = "import array; array.array('I', [5000, 7000, 9000]).tofile(open(arguments[-1], 'wb'))"

    def said(report: dict[str, float] | str) -> Reading:
        body = f"print({json.dumps(report)!r})"
        return kind(program(tmp_path, f"{import_times}\n{body}" if kind is load_programs.c else body), ASK)

    reading = said(REPORT | {"errors": 1, "all_requests": 8})
    assert (reading.throughput_hz, reading.p50_us, reading.errors) == (5.0, 7.0, 1)
    if kind is load_programs.c:
        assert reading.times is not None
        assert (reading.requests, reading.times.sum_ns) == (3, 21_000)
        assert reading.p99_us == pytest.approx(8.96)
        assert reading.all_requests == 8
    else:
        assert reading == Reading(5, 5.0, 7.0, 9.0, errors=1)
    with pytest.raises(ProgramFailed, match="not a report"):
        said("rubbish")


def test_grpc_go_is_told_what_calls_hold_and_is_read(tmp_path: Path) -> None:
    """``grpc-go`` gets the levels of its calls. Its times are read from a file, and its errors are added up."""
    noted = tmp_path / "noted"
    report = {"good_hz": 3.0, "errors": {"Unavailable": 2, "EmptyReply": 1}, "all_calls": 9}
    report |= {"client_cpu_s": 0.25, "seconds": 0.5, "never_sent": 4, "late_us_p99": 70.0}
    body = f"import struct; open({str(noted)!r}, 'w').write(' '.join(arguments))\n"
    body += (
        "file = open(arguments[arguments.index('-times') + 1], 'wb'); file.write(struct.pack('<3q', 1000, 2000, 9000))"
    )
    client = LoadProgram(program(tmp_path, f"{body}\nprint(json.dumps({report!r}))"), load_programs.grpc_go)
    reading = client.load(replace(ASK, in_flight=16, headers="2560B"))
    assert reading.times is not None
    assert (reading.requests, reading.times.sum_ns, reading.errors) == (3, 12_000, 3)
    assert (reading.throughput_hz, reading.p50_us, reading.cpu_share, reading.all_requests) == (3.0, 2.0, 0.5, 9)
    told = f"-address 127.0.0.1:1 -call {LOOKUP} -data-hex 0a0141 -connections 2 -in-flight 16"
    assert f"{told} -metadata-bytes 2560 -metadata-new -warm-up 0.5s -duration 1s -times " in noted.read_text()
    assert (reading.never_sent, reading.late_us_p99) == (0, None)
    reading = client.load(replace(ASK, deadline_s=0.09, rate_hz=15500.0, arrivals="poisson"))
    assert (reading.never_sent, reading.late_us_p99) == (4, 70.0)
    assert " -duration 1s -deadline 0.09s -rate 15500 -arrivals poisson -times " in noted.read_text()


def test_a_program_that_fails_says_why() -> None:
    """A failure has its reason: the exit code and the last lines, a missing program, or a timeout."""
    with pytest.raises(ProgramFailed, match=r"exit code 3; its error output: first \| second"):
        finished([sys.executable, "-c", "import sys; print('first\\nsecond', file=sys.stderr); sys.exit(3)"], None, 10)
    with pytest.raises(ProgramFailed, match="no-such-program: did not start"):
        finished(["/no-such-program"], None, 10)
    with pytest.raises(ProgramFailed, match=r"took over 0\.05 s"):
        finished([sys.executable, "-c", "import threading; threading.Event().wait()"], None, 0.05)


@pytest.mark.slow
def test_ctrl_c_ends_what_was_started(tmp_path: Path) -> None:
    """Ctrl-C ends the program before KeyboardInterrupt leaves ``finished``."""
    started = tmp_path / "started"
    body = f"import os, threading; open({str(started)!r}, 'w').write(f'{{os.getpid()}}.'); threading.Event().wait()"

    def interrupt() -> None:
        while not (started.exists() and started.read_text().endswith(".")):
            threading.Event().wait(0.005)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt, name="ctrl-c")
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        finished([sys.executable, "-c", body], None, 30)
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text().rstrip(".")), 0)


def test_what_is_absent_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing compiler or tool is one line with the way to get it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(load_programs, "TOOLS", tmp_path)
    monkeypatch.setattr(load_programs, "is_built", lambda _: False)
    with load_programs.load_programs(("ghz", "h2load", "go", "c", "grpc-go")) as found:
        lines = {name: str(each) for name, each in found.items() if isinstance(each, Absent)}
    assert lines["ghz"] == "ghz is absent: run make go-tools, which needs Go"
    assert lines["h2load"] == "h2load is absent: install nghttp2-client"
    assert lines["go"] == "the Go client cannot be built: install Go, see https://go.dev/doc/install"
    assert lines["grpc-go"].startswith("the peer go-stock is not built from these sources: ")
    assert lines["c"] == "the C client cannot be built: install a C compiler as cc"


def test_every_client_tells_the_server_our_own_timeout() -> None:
    """Load programs send the server the timeout of our own client."""
    assert lookups("grpc", ASK.address).timeout_s * 1000 == load_programs.TIMEOUT_MS
