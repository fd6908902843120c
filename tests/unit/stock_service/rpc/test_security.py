"""Callers and their rights: the file, and the check of one request."""

from pathlib import Path

import pytest

from stock_service.rpc.errors import PermissionDenied, Unauthenticated, UnknownMethod, UsageError
from stock_service.rpc.security import UNREADABLE, Access, Guard, Right, digest, shown_in

TOKEN = b"trader-token-of-43-characters"
OTHER = b"another-token"

FILE = f"""
[[callers]]
name = "desk"
right = "trader"
token_sha256 = "{digest(TOKEN).hex()}"

[[callers]]
name = "boss"
right = "admin"
certificate = "boss"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A trader by token, and an admin by certificate."""
    made = tmp_path / "access.toml"
    made.write_text(FILE)
    return made


def test_a_token_and_a_certificate_each_give_a_right(file: Path) -> None:
    """The greater of both counts."""
    access = Access(file)
    access.check(Right.TRADER, digest(TOKEN), "")
    access.check(Right.ADMIN, None, "boss")
    access.check(Right.ADMIN, digest(TOKEN), "boss")
    with pytest.raises(PermissionDenied):
        access.check(Right.ADMIN, digest(TOKEN), "")


@pytest.mark.parametrize("right", [Right.TRADER, Right.ADMIN])
def test_who_shows_nothing_valid_is_nobody(file: Path, right: Right) -> None:
    """A caller without a valid credential is unknown, also with a wrong token beside a good certificate. An unlisted
    certificate has no right."""
    access = Access(file)
    wrong = digest(TOKEN)[:8] + digest(OTHER)[8:]
    for shown, certificate in ((None, ""), (digest(OTHER), ""), (UNREADABLE, ""), (wrong, "boss"), (b"\0" * 32, "")):
        with pytest.raises(Unauthenticated):
            access.check(right, shown, certificate)
    with pytest.raises(PermissionDenied):
        access.check(right, None, "stranger")


def test_a_method_without_an_entry_is_nobodys(file: Path) -> None:
    """A method without an entry is closed to everybody, also to an admin, for any path."""
    guard = Guard(Access(file), {b"/a.B/C": Right.ADMIN})
    guard.check(b"/a.B/C", None, "boss")
    for path in (b"", b"/a.B/D", b"/a.B/C/", b"//a.B/C", b"/A.B/C", b"/a.B/C?x"):
        with pytest.raises(UnknownMethod):
            guard.check(path, None, "boss")


def test_strangers_leave_nothing_behind(file: Path) -> None:
    """A right of anyone is granted to any client, which needs no valid credential, and its credentials are kept
    nowhere."""
    access = Access(file)
    Guard(access, {b"/a/Check": Right.ANYONE}).check(b"/a/Check", digest(OTHER), "")
    assert not access.granted


def test_what_was_granted_is_checked_again_once_the_file_was_read_anew(file: Path) -> None:
    """After the file is read anew a grant is checked again. It holds only for its method and token, without a
    certificate."""
    access = Access(file)
    guard = Guard(access, {b"/a/B": Right.TRADER, b"/a/C": Right.ADMIN})
    for _ in range(2):
        guard.check(b"/a/B", digest(TOKEN), "")
    assert access.granted == {(b"/a/B", digest(TOKEN))}
    for path, shown, certificate in (
        (b"/a/C", digest(TOKEN), ""),
        (b"/a/B", digest(OTHER), ""),
        (b"/a/B", None, ""),
        (b"/a/B", None, "nobody"),
    ):
        with pytest.raises((PermissionDenied, Unauthenticated)):
            guard.check(path, shown, certificate)
    guard.check(b"/a/C", None, "boss")
    assert len(access.granted) == 1
    file.write_text(FILE.replace(digest(TOKEN).hex(), digest(OTHER).hex()))
    access.reload()
    guard.check(b"/a/B", digest(OTHER), "")
    with pytest.raises(Unauthenticated):
        guard.check(b"/a/B", digest(TOKEN), "")


def test_a_bad_file_changes_nothing(file: Path) -> None:
    """The callers of before keep their rights. A missing file is refused by its name and the reason."""
    access = Access(file)
    file.write_text("[[callers]]\nname = 1")
    with pytest.raises(UsageError):
        access.reload()
    file.unlink()
    with pytest.raises(UsageError, match=r"--access: got .*No such file"):
        access.reload()
    access.check(Right.TRADER, digest(TOKEN), "")


def test_a_bad_file_is_refused_by_its_place(file: Path) -> None:
    """A bad file is refused with the file and the key, without the token's value."""
    for text, place in (
        ("", "callers: "),
        ("callers = []", "callers: "),
        ("callers = 1", "callers: "),
        ("callers = [1]", "callers[1]: "),
        ("[other]\n" + FILE, "callers: "),
        ("=", "--access: "),
        (FILE.replace('"trader"', '"king"'), "callers[1].right: "),
        (FILE.replace('"desk"', '""'), "callers[1].name: "),
        (FILE.replace('"desk"', '"boss"'), "callers[2].name: "),
        (FILE.replace(digest(TOKEN).hex(), "ab"), "callers[1].token_sha256: "),
        (FILE.replace(digest(TOKEN).hex(), ""), "callers[1]: "),
        (FILE.replace("certificate", "certificates"), "callers[2].certificates: "),
        (FILE.replace('certificate = "boss"', f'token_sha256 = "{digest(TOKEN).hex()}"'), "callers[2].token_sha256: "),
        (FILE.replace('token_sha256 = "', 'token_sha256 = "x'), "callers[1].token_sha256: "),
    ):
        file.write_text(text)
        with pytest.raises(UsageError) as refused:
            Access(file)
        said = str(refused.value)
        assert place in said
        assert digest(TOKEN).hex() not in said


def test_a_field_shows_one_token_or_none_that_is_valid() -> None:
    """A field that is not a valid ``Bearer TOKEN`` counts as unreadable, not as a missing token."""
    assert shown_in([]) is None
    assert shown_in(["Bearer abc"]) == shown_in(["bearer   abc"]) == digest(b"abc")
    assert shown_in(["Bearer abc", "Bearer abc"]) == UNREADABLE
    for field in ("Bearer ", "Bearer", "Basic abc", "Bearer abc def", "Bearer " + "a" * 257, "Bearer ä", ""):
        assert shown_in([field]) == UNREADABLE, field
