"""Access control: callers and their rights, the file with the callers (``--access``), and the check of one request. The
module reads the file, and does no other I/O.

    [[callers]]
    name = "desk"
    right = "trader"             # or "admin"
    token_sha256 = "5e88…"       # SHA-256 of the token that this caller shows; 64 hexadecimal digits
    certificate = "desk"         # common name of the caller's client certificate

A caller has a token, a certificate or both. A method declares the right that it needs (``Method.right``). The default
is ADMIN: only an admin may call a method that declares no right. ``Guard`` has a table with the right that each path
needs, and refuses a path that is not in this table. The server first finds the method of a request. The check uses this
method's path, and never the path in the request's bytes.

The service stores and compares only the SHA-256 of a token, and never the token. No error of this module contains a
token or a part of a token. A cache of request heads stores a head with a token under a digest of the head
(``concealed``). The decoded head has only the token's digest.
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
"""Largest number of callers in a file. With this limit, a wrong file cannot fill the memory."""

NAME_LENGTH_MAX = 64
"""Largest number of characters of a caller's name, and of a certificate's common name (X.520)."""

Metadata = tuple[tuple[str, str], ...]
"""Metadata that a client sends with every request: pairs of a key and a value, in ASCII. The keys are in lower case."""

TOKEN_BYTES_MAX = 256
"""Largest size of a token, in bytes."""

TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,256}=*", re.ASCII)
"""Pattern of a token that every transport can carry (RFC 6750, ``b64token``), with at least 16 characters."""

_BEARER = re.compile(r"bearer +([!-~]+)", re.ASCII | re.IGNORECASE)

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)

_KEYS = {"name", "right", "token_sha256", "certificate"}

AUTHORIZATION = "authorization"
"""Name of the field in which a request shows a token."""

_KEY = token_bytes(32)
"""Secret key that ``concealed`` uses. Each process makes its own key."""


class Right(IntEnum):
    """Right of a caller. A right includes all smaller rights."""

    ANYONE = 0
    """Right of a caller without a credential: to ask for the server's health."""
    TRADER = 1
    """Right to look up and to trade."""
    ADMIN = 2
    """Right to set prices, and to call methods that declare no right."""


_RIGHTS = {"trader": Right.TRADER, "admin": Right.ADMIN}

Shown = bytes | None
"""Credential that a request shows: the digest of its token; None without a token; ``UNREADABLE`` for an invalid token.
"""

UNREADABLE = b""
"""Value of ``Shown`` for an invalid token. No caller has this digest."""


Asked = tuple[bytes | None, Shown]
"""Input of a check: the path of a method, and the credential that the request shows. The server has found the method
for the request. For an unknown method, the path is None.
"""


def digest(token: bytes) -> bytes:
    """Returns the digest of a token, 32 bytes: the only form of a token that the service stores."""
    return sha256(token).digest()


def concealed(head: bytes) -> bytes:
    """Returns the key under which a cache stores a head with a token. The key reveals nothing of the head's bytes, and
    no client can make a head whose bytes equal a key. Takes some 0.6 µs.
    """
    return blake2b(_KEY + head).digest()  # HMAC is not necessary, since BLAKE2 has no length-extension attack


def shown_in(authorization: Iterable[str]) -> Shown:
    """Returns the credential that a request shows. ``authorization`` has the values of the field with this name. Only a
    single value ``Bearer TOKEN`` is valid.
    """
    values = tuple(authorization)
    if not values:
        return None
    found = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    return UNREADABLE if found is None or len(found[1]) > TOKEN_BYTES_MAX else digest(found[1].encode())


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller, as the file describes the caller."""

    name: str
    right: Right
    token_digest: bytes
    """Digest of the caller's token; empty for a caller without a token."""
    certificate: str
    """Common name of the caller's certificate; empty for a caller without a certificate."""


class Access:
    """Access list: the callers of a file, with their rights. Thread-safe, but only one thread at a time may
    ``reload``."""

    def __init__(self, file: Path) -> None:
        """Reads the file. Raises UsageError, as ``load`` does."""
        self.file = file
        self._by_token: Mapping[bytes, Caller] = {}  # by digest, so that a look-up's time reveals nothing of a token
        self._by_certificate: Mapping[str, Caller] = {}
        self.granted: set[Asked] = set()
        """Pairs of a method's path and a token's digest: ``Guard`` has allowed these calls since the last ``reload``. A
        pair is valid on every connection, with any certificate.
        """
        self.refused: Callable[[str, str], object] | None = None
        """Function to call at each refusal; None without metrics. The arguments are the text ``request`` and the name
        of the fault's code.
        """
        self.reload()

    def reload(self) -> None:
        """Reads the file again. The new callers are valid for every request that the server reads afterwards. If the
        file is invalid, raises UsageError and changes nothing.
        """
        callers = load(self.file)
        self._by_certificate = {caller.certificate: caller for caller in callers if caller.certificate}
        self._by_token = {caller.token_digest: caller for caller in callers if caller.token_digest}
        self.granted = set()  # assigned last: a thread that sees this set also sees the new callers

    def check(self, needed: Right, shown: Shown, certificate: str) -> None:
        """Checks that a request's caller has the right ``needed``. Raises Unauthenticated, PermissionDenied.

        ``certificate`` is the common name in the client certificate of the request's connection, or empty. An unknown
        token is refused even if the certificate would suffice. The check takes some microseconds.
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
    """Access check of one server's methods, with a cache of grants. Thread-safe."""

    def __init__(self, access: Access, rights: Mapping[bytes, Right]) -> None:
        """``rights`` has the right that each method needs, by the method's path."""
        self.access = access
        """Access list. A request whose path and token are in ``access.granted`` needs no ``check``."""
        self._rights = rights

    def check(self, path: bytes, shown: Shown, certificate: str) -> None:
        """Checks that a caller may call the method ``path``. Raises Unauthenticated, PermissionDenied,
        UnknownMethod."""
        granted = self.access.granted
        if (path, shown) in granted:
            return
        needed = self._rights.get(path)
        if needed is None:
            raise UnknownMethod("no such method")
        self.access.check(needed, shown, certificate)
        judged = shown is not None and needed is not Right.ANYONE  # unknown tokens must not fill ``granted``
        if judged and not certificate:  # the right may come from the certificate, and not from the token
            granted.add((path, shown))


def load(path: Path) -> tuple[Caller, ...]:
    """Reads the callers of a file, in the file's order. Raises UsageError, which names the file and, in a wrong table,
    the key, but shows no value.
    """
    file = str(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError("--access", file, f"a readable file ({error.strerror})") from error
    except (ValueError, RecursionError):  # the error's text might quote the file
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
    """Makes the caller of one table of the file. ``place`` names the table in an error. Raises UsageError."""
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
