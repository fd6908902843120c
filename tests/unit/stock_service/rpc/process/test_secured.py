"""A server's options of TLS and callers: which go together, where they let it listen, and files that change."""

import argparse
import logging
import shutil
import threading
from pathlib import Path

import pytest

from stock_service.rpc.errors import Unauthenticated, UsageError
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.process.secured import security_of, watch
from stock_service.rpc.process.serving import add_server_options
from stock_service.rpc.security import Right, digest
from stock_service.rpc.tls import read_token
from tests.conformance.running import WAIT_S, until
from tests.tls import credentials

PAIR = ("--tls-cert", "server.pem", "--tls-key", "server-key.pem")


def given(transport: str, *words: str) -> argparse.Namespace:
    """Options, with the names of credentials as their paths."""
    parser = Parser("prog", "")
    add_server_options(parser, transport)
    folder = credentials()
    return parser.parse_args([str(folder / word) if (folder / word).is_file() else word for word in words])


def test_options_that_do_not_go_together() -> None:
    """Are refused by name; so is a host beyond this machine without both TLS and callers."""
    for words, said in (
        (("--tls-cert", "server.pem"), "--tls-key: missing"),
        (("--tls-key", "server-key.pem"), "--tls-key: got .*allowed: beside --tls-cert"),
        (("--tls-client-ca", "ca.pem"), "--tls-client-ca: got .*allowed: beside --tls-cert"),
        ((*PAIR, "--tls-client-ca", "ca.pem"), "--tls-client-ca: got .*allowed: beside --access"),
        (("--host", "0.0.0.0"), "--host: "),
        (("--host", "::"), "--host: "),
        (("--host", "stocks.example"), "--host: "),
        (("--host", "0.0.0.0", *PAIR), "--host: "),
        (("--host", "0.0.0.0", "--access", "access.toml"), "--host: "),
        (("--host", "0.0.0.0", "--insecure", "--access", "admin.token"), "--access: "),
    ):
        with pytest.raises(UsageError, match=said):
            security_of("sockets", given("sockets", *words))


def test_options_that_go_together() -> None:
    """Options that go together give the asked security."""
    words: tuple[str, ...]
    for words in (
        (),
        ("--host", "::1"),
        ("--host", "0.0.0.0", "--insecure"),
        ("--host", "0.0.0.0", *PAIR, "--access", "access.toml"),
        ("--host", "::", *PAIR, "--access", "access.toml", "--tls-client-ca", "ca.pem"),
        ("--access", "access.toml"),
        PAIR,
    ):
        security = security_of("sockets", given("sockets", *words))
        assert (security.tls is not None) == ("--tls-cert" in words)
        assert (security.access is not None) == ("--access" in words)
        assert len(security.files) == sum(word.endswith((".pem", ".toml")) for word in words)


def test_files_that_change_are_read_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Changed files are read once for each change. Unusable ones are a line, and the watch goes on."""
    file, reads = tmp_path / "file", threading.Semaphore(0)
    file.write_text("a")
    bad = threading.Event()

    def reload() -> None:
        reads.release()
        if bad.is_set():
            raise UsageError("--access", "file", "better")

    with caplog.at_level(logging.ERROR), watch([file], reload, look_s=0.005):
        for number in range(3):
            file.write_text("ab" * (number + 1))
            assert reads.acquire(timeout=WAIT_S)
        bad.set()
        file.unlink()
        assert reads.acquire(timeout=WAIT_S)
        until(lambda: bool(caplog.records), "it is said")
        bad.clear()
        file.write_text("a")
        assert reads.acquire(timeout=WAIT_S)
    assert "cannot be used; what was read before stays: --access" in caplog.text


def test_what_could_not_be_read_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that could not be read is tried again without a further change, since a descriptor may have lacked. The
    line is written once."""
    file, reads = tmp_path / "file", threading.Semaphore(0)
    file.write_text("a")

    def reload() -> None:
        reads.release()
        raise UsageError("--access", "file", "a readable file (Too many open files)")

    with caplog.at_level(logging.ERROR), watch([file], reload, look_s=0.001):
        assert all(reads.acquire(timeout=WAIT_S) for _ in range(3))
    assert len(caplog.records) == 1


def test_a_change_before_the_watch_begins_is_seen(tmp_path: Path) -> None:
    """The first look reads the files, so that a change before it is seen."""
    file, read = tmp_path / "file", threading.Event()
    file.write_text("a")
    with watch([file], read.set, look_s=0.001):
        assert read.wait(WAIT_S)


def test_a_token_is_withdrawn_though_a_certificate_cannot_be_used(tmp_path: Path) -> None:
    """A token is withdrawn though a certificate cannot be used, and the other way round: neither file waits for the
    other."""
    for name in ("server.pem", "server-key.pem", "access.toml"):
        shutil.copy(credentials() / name, tmp_path / name)
    words = [
        str(tmp_path / word) if word.endswith(("pem", "toml")) else word for word in (*PAIR, "--access", "access.toml")
    ]
    security = security_of("sockets", given("sockets", *words))
    assert security.access is not None
    assert security.tls is not None
    admin = digest(read_token(credentials() / "admin.token").encode())
    security.access.check(Right.ADMIN, admin, "")
    (tmp_path / "server.pem").write_text("half")
    (tmp_path / "access.toml").write_text('[[callers]]\nname = "a"\nright = "trader"\ncertificate = "a"\n')
    with pytest.raises(UsageError, match="--tls-cert"):
        security.reload()
    with pytest.raises(Unauthenticated):
        security.access.check(Right.ADMIN, admin, "")
    before = security.tls.context
    shutil.copy(credentials() / "server.pem", tmp_path / "server.pem")
    (tmp_path / "access.toml").write_text("half")
    with pytest.raises(UsageError, match="--access"):
        security.reload()
    assert security.tls.context is not before


def test_without_files_nothing_is_watched() -> None:
    """No thread is started for it."""
    before = threading.active_count()
    with watch([], lambda: None):
        assert threading.active_count() == before
