"""Who may call which method: rights, the file that grants them, and the check of one request. No I/O but that file.

    [[callers]]
    name = "desk"
    right = "trader"             # or "admin"
    token_sha256 = "5e88…"       # of the token that this caller shows; 64 hexadecimal digits
    certificate = "desk"         # the common name of its client certificate

A caller has a token, a certificate or both. A method says which right it needs (``Method.right``), and one that says
nothing needs an admin's. So a new method is closed until somebody opens it. What has no entry in ``Guard`` is answered
by nobody: a request is judged by the method that it was resolved to, never by the path that it came with.

A token is never kept and never compared: its SHA-256 is. Nothing here says a token, or a part of one, in an error. A
head that shows one is kept by its own digest (``concealed``), and what it means has the token's.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b, sha256
from pathlib import Path
from secrets import token_bytes

from stock_service.rpc.errors import Fault, PermissionDenied, Unauthenticated, UnknownMethod, UsageError

CALLERS_MAX = 10_000
"""Callers in a file, at most: keeps a mistaken file from filling memory."""

NAME_LENGTH_MAX = 64
"""Characters of a caller's name, and of a certificate's common name (X.520), at most."""

TOKEN_BYTES_MAX = 256
"""Bytes of a token, at most."""

TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,256}=*", re.ASCII)
"""What a token is made of, which every transport can carry (RFC 6750, ``b64token``). 16 characters at least."""

_BEARER = re.compile(r"bearer +([!-~]+)", re.ASCII | re.IGNORECASE)

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)

_KEYS = {"name", "right", "token_sha256", "certificate"}

AUTHORIZATION = "authorization"
"""The field in which a request shows a token."""

_KEY = token_bytes(32)
"""Of ``concealed``, in this process."""


class Right(IntEnum):
    """What a caller may do. Each includes those before it."""

    ANYONE = 0
    """What needs no credential: whether the server serves."""
    TRADER = 1
    """To look up and to trade."""
    ADMIN = 2
    """To set prices, and whatever a method does not declare."""


_RIGHTS = {"trader": Right.TRADER, "admin": Right.ADMIN}

Shown = bytes | None
"""What a request shows: its token's digest; None where it shows none. ``UNREADABLE`` where it is no token."""

UNREADABLE = b""
"""Of something that is shown for a token and is none: no caller has it."""


Asked = tuple[bytes | None, Shown]
"""A method by the path that a request was resolved to, None for none, and what the request shows."""


def digest(token: bytes) -> bytes:
    """A token as it is known here, 32 bytes."""
    return sha256(token).digest()


def concealed(head: bytes) -> bytes:
    """The key under which a head is kept that shows a token: it says nothing of the head's bytes, and no client can
    make bytes that are it. Takes some 0.6 µs.
    """
    return blake2b(_KEY + head).digest()  # which needs no HMAC: nobody can lengthen a hash of BLAKE2


def shown_in(authorization: Iterable[str]) -> Shown:
    """What the values of a request's field ``authorization`` show: one, ``Bearer TOKEN``, or nothing that is valid."""
    values = tuple(authorization)
    if not values:
        return None
    found = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    return UNREADABLE if found is None or len(found[1]) > TOKEN_BYTES_MAX else digest(found[1].encode())


@dataclass(frozen=True, slots=True)
class Caller:
    """One that is known."""

    name: str
    right: Right
    token_digest: bytes
    """Empty where it has no token."""
    certificate: str
    """Its certificate's common name; empty where it has none."""


class Access:
    """The callers that a file grants rights to. Any thread may ask; ``reload`` is for one at a time."""

    def __init__(self, file: Path) -> None:
        """Reads the file. Raises UsageError, which names the file and the line or key."""
        self.file = file
        self._by_token: Mapping[bytes, Caller] = {}  # by its digest: the time of a look-up says nothing of a token
        self._by_certificate: Mapping[str, Caller] = {}
        self.granted: set[Asked] = set()
        """What tokens were found good for since the file was read; it holds on every connection, whatever that shows
        besides."""
        self.refused: Callable[[str, str], object] | None = None
        """Told of each refusal: that it was of a ``request``, and the fault's code. None: nobody is."""
        self.reload()

    def reload(self) -> None:
        """Reads the file anew, for all requests read from now on. Raises as ``__init__``, and changes nothing then."""
        callers = load(self.file)
        self._by_certificate = {caller.certificate: caller for caller in callers if caller.certificate}
        self._by_token = {caller.token_digest: caller for caller in callers if caller.token_digest}
        self.granted = set()  # last: whoever has this one is checked against the callers above

    def check(self, needed: Right, shown: Shown, certificate: str) -> None:
        """Returns where a request may be answered. ``certificate``: its connection's common name, or empty.

        A token that is not known is refused even where a certificate would do. Raises Unauthenticated and
        PermissionDenied. Takes some microseconds.
        """
        if needed is Right.ANYONE:
            return
        try:
            right = Right.ANYONE if shown is None else self._right_of_token(shown)
            if certificate:
                caller = self._by_certificate.get(certificate)
                right = max(right, Right.ANYONE if caller is None else caller.right)
            if right >= needed:
                return
            if shown is None and not certificate:
                raise Unauthenticated("this needs a token or a client certificate")
            raise PermissionDenied(f"this needs the right {needed.name.lower()}")
        except Fault as fault:
            if self.refused is not None:
                self.refused("request", fault.code.name)
            raise

    def _right_of_token(self, shown: bytes) -> Right:
        caller = self._by_token.get(shown)
        if caller is None:
            raise Unauthenticated("the token is not known")
        return caller.right


class Guard:
    """Who may call the methods of one server. Any thread."""

    def __init__(self, access: Access, rights: Mapping[bytes, Right]) -> None:
        """``rights``: what each method that can be answered needs, by the path that it is resolved to."""
        self.access = access
        """Whose ``granted`` spares a ``check``."""
        self._rights = rights

    def check(self, path: bytes, shown: Shown, certificate: str) -> None:
        """Returns where the method may be answered; raises Unauthenticated, PermissionDenied, UnknownMethod."""
        granted = self.access.granted
        if (path, shown) in granted:
            return
        needed = self._rights.get(path)
        if needed is None:
            raise UnknownMethod("no such method")
        self.access.check(needed, shown, certificate)
        judged = shown is not None and needed is not Right.ANYONE  # else strangers would fill this
        if judged and not certificate:  # or it might be the certificate that was good for it
            granted.add((path, shown))


def load(path: Path) -> tuple[Caller, ...]:
    """The callers of a file, in its order. Raises UsageError naming the file and the line or key, and no value."""
    file = str(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError("--access", file, f"a readable file ({error.strerror})") from error
    except (ValueError, RecursionError):  # of which the text might quote what stands there
        raise UsageError("--access", file, "a file in TOML, in UTF-8") from None
    entries = document.get("callers")
    if not isinstance(entries, list) or not 0 < len(entries) <= CALLERS_MAX or len(document) > 1:
        raise UsageError(f"{file}: callers", None, f"1 to {CALLERS_MAX} tables [[callers]], and nothing else")
    callers: list[Caller] = []
    seen: set[str | bytes] = set()
    for number, entry in enumerate(entries, start=1):
        place = f"{file}: callers[{number}]"
        caller = _caller(place, entry)
        for key, value in (
            ("name", caller.name),
            ("token_sha256", caller.token_digest),
            ("certificate", f"CN={caller.certificate}" if caller.certificate else ""),
        ):
            if value and value in seen:
                raise UsageError(f"{place}.{key}", "what a caller before it has", "one of its own")
            seen.add(value)
        callers.append(caller)
    return tuple(callers)


def _caller(place: str, entry: object) -> Caller:
    """One table of the file."""
    if not isinstance(entry, dict):
        raise UsageError(place, None, "a table [[callers]]")
    for key in sorted(entry.keys() - _KEYS):
        raise UsageError(f"{place}.{key}", "an unknown key", f"{', '.join(sorted(_KEYS))}")
    name, right = entry.get("name"), entry.get("right")
    token, certificate = entry.get("token_sha256", ""), entry.get("certificate", "")
    if not _is_name(name):
        raise UsageError(f"{place}.name", None, f"a text of 1 to {NAME_LENGTH_MAX} characters")
    if not isinstance(right, str) or right not in _RIGHTS:
        raise UsageError(f"{place}.right", None, " or ".join(_RIGHTS))
    if not isinstance(token, str) or (token and not _DIGEST.fullmatch(token.lower())):
        raise UsageError(f"{place}.token_sha256", "what is none", "a SHA-256 in 64 hexadecimal digits")
    if certificate != "" and not _is_name(certificate):
        raise UsageError(f"{place}.certificate", "what is none", f"a common name, 1 to {NAME_LENGTH_MAX} characters")
    if not token and not certificate:
        raise UsageError(f"{place}", None, "token_sha256, certificate, or both")
    return Caller(str(name), _RIGHTS[right], bytes.fromhex(token), str(certificate))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_LENGTH_MAX
