"""Files of TLS and tokens: refusals, their words, and that no word is a secret."""

from pathlib import Path

import pytest

from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.credentials import make
from stock_service.rpc.tls import ClientCredentials, ServerTls, TlsFiles, named_in, read_token
from tests.tls import credentials, server_tls


def test_files_that_cannot_be_used_are_refused_by_option() -> None:
    """Unusable files are refused by their option, before a server listens."""
    folder = credentials()
    for certificate, key, authority, said in (
        ("none.pem", "server-key.pem", None, "--tls-cert: .*No such file"),
        ("server.pem", "none.pem", None, "--tls-key: .*No such file"),
        ("server.pem", "admin-key.pem", None, "--tls-cert, --tls-key: .*KEY_VALUES_MISMATCH"),
        ("access.toml", "server-key.pem", None, "--tls-cert, --tls-key: "),
        ("server.pem", "server-key.pem", folder / "access.toml", "--tls-client-ca: .*certificates in PEM"),
    ):
        with pytest.raises(UsageError, match=said):
            ServerTls(TlsFiles(folder / certificate, folder / key, authority))


def test_a_bad_pair_leaves_the_one_before(tmp_path: Path) -> None:
    """A bad pair leaves the one before, as where only the certificate has been replaced yet."""
    make(tmp_path / "own")
    tls = server_tls(tmp_path / "own")
    before = tls.context, tls.pems
    (tmp_path / "own" / "server.pem").write_bytes((credentials() / "server.pem").read_bytes())
    with pytest.raises(UsageError):
        tls.reload()
    assert (tls.context, tls.pems) == before


@pytest.mark.parametrize("text", ["", "short", "a" * 257, "has a space in it", "line\nline-of-a-token", "ß" * 20])
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    """A file without a token is refused by its name, without its content."""
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_token(file)
    assert not text or text not in str(refused.value)


def test_no_secret_is_shown_by_a_name_of_it() -> None:
    """No secret is in a credential's text, so that a traceback or a log cannot show it."""
    folder = credentials()
    token = read_token(folder / "admin.token")
    shown = ClientCredentials(folder / "ca.pem", folder / "admin.pem", folder / "admin-key.pem", token)
    said = f"{shown!r} {shown.pems()!r} {server_tls(folder).pems!r}"
    assert token not in said
    assert "PRIVATE" not in said


def test_a_name_is_one_or_none() -> None:
    """A certificate with two names has none, since its holder is not clear."""
    one, two = (("commonName", "a"),), (("commonName", "b"),)
    assert named_in({"subject": (one,)}) == "a"
    assert named_in({"subject": ((("organizationName", "o"),), one)}) == "a"
    assert named_in({"subject": (one, two)}) == ""
    assert named_in({"subject": ()}) == ""
    assert named_in(None) == ""


def test_credentials_are_the_owners_alone(tmp_path: Path) -> None:
    """Keys and tokens; and nothing that is there is overwritten."""
    folder = tmp_path / "new"
    make(folder, hosts=["stocks.example"])
    secret = sorted(file.name for file in folder.iterdir() if file.stat().st_mode & 0o077 == 0)
    expected = ["admin-key.pem", "admin.token", "ca-key.pem", "server-key.pem", "trader-key.pem", "trader.token"]
    assert secret == expected
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(UsageError, match="new or empty"):
        make(folder)
    (there := tmp_path / "there").mkdir(0o777)
    make(there)
    assert there.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("host", ["stöcks", ""])
def test_a_host_that_no_certificate_can_name_is_refused(tmp_path: Path, host: str) -> None:
    """A host that no certificate can name is refused before a file is written, so that the folder can be used with a
    right name."""
    with pytest.raises(UsageError, match="--hosts"):
        make(tmp_path / "new", hosts=[host])
    assert not (tmp_path / "new").exists()
