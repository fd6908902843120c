"""Rights of callers, the file that grants the rights, and the check of one request. Reading the file is the only I/O.

    [[callers]]
    name = "desk"
    right = "trader"             # or "admin"
    token_sha256 = "5e88…"       # of the token that this caller shows; 64 hexadecimal digits
    certificate = "desk"         # the common name of its client certificate

A caller has a token, a certificate or both. A method declares the right that it needs (``Method.right``). The default
is an admin's right. So only an admin may call a new method until its right is declared. A method without an entry in
``Guard`` is never answered. The check uses the method that a request was resolved to, and never the path in the
request's bytes.

A token itself is never kept and never compared: the service keeps and compares only the token's SHA-256. No error of
this module contains a token or a part of a token. A request's head that shows a token is kept under the head's digest
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
"""Largest number of callers in a file: so a mistaken file cannot fill the memory."""

NAME_LENGTH_MAX = 64
"""Largest number of characters of a caller's name, and of a certificate's common name (X.520)."""

Metadata = tuple[tuple[str, str], ...]
"""Pairs of a key and a value that a client sends with every request, in ASCII. The keys are in lower case."""

TOKEN_BYTES_MAX = 256
"""Largest size of a token, in bytes."""

TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,256}=*", re.ASCII)
"""Pattern of a token that every transport can carry (RFC 6750, ``b64token``). 16 characters at least."""

_BEARER = re.compile(r"bearer +([!-~]+)", re.ASCII | re.IGNORECASE)

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)

_KEYS = {"name", "right", "token_sha256", "certificate"}

AUTHORIZATION = "authorization"
"""The field in which a request shows a token."""

_KEY = token_bytes(32)
"""Key of ``concealed``, in this process."""


class Right(IntEnum):
    """Right of a caller. Each right includes the rights before it."""

    ANYONE = 0
    """Right of a caller without a credential: to ask for the server's health."""
    TRADER = 1
    """Right to look up and to trade."""
    ADMIN = 2
    """Right to set prices, and to call methods that declare no right."""


_RIGHTS = {"trader": Right.TRADER, "admin": Right.ADMIN}

Shown = bytes | None
"""Credential of a request: the digest of its token; None without a token; ``UNREADABLE`` for a token that is not
valid.
"""

UNREADABLE = b""
"""Digest that stands for a token that is not valid: no caller has this digest."""


Asked = tuple[bytes | None, Shown]
"""Path of the method that a request was resolved to, or None, and the credential that the request shows."""


def digest(token: bytes) -> bytes:
    """Digest of a token, 32 bytes. The service knows the token only by this digest."""
    return sha256(token).digest()


def concealed(head: bytes) -> bytes:
    """Key under which a head with a token is kept. The key reveals nothing of the head's bytes, and no client can make
    a head whose bytes equal a key. Takes some 0.6 µs.
    """
    return blake2b(_KEY + head).digest()  # without HMAC: a hash of BLAKE2 cannot be extended


def shown_in(authorization: Iterable[str]) -> Shown:
    """Credential in the values of a request's field ``authorization``. Only a single value ``Bearer TOKEN`` is
    valid.
    """
    values = tuple(authorization)
    if not values:
        return None
    found = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    return UNREADABLE if found is None or len(found[1]) > TOKEN_BYTES_MAX else digest(found[1].encode())


@dataclass(frozen=True, slots=True)
class Caller:
    """A known caller."""

    name: str
    right: Right
    token_digest: bytes
    """Empty for a caller without a token."""
    certificate: str
    """Common name of the caller's certificate; empty for a caller without a certificate."""


class Access:
    """The callers of a file, with their rights. Any thread may check; one at a time may ``reload``."""

    def __init__(self, file: Path) -> None:
        """Reads the file. Raises UsageError, which names the file and the line or key."""
        self.file = file
        self._by_token: Mapping[bytes, Caller] = {}  # by digest: so a look-up's time tells nothing of a token
        self._by_certificate: Mapping[str, Caller] = {}
        self.granted: set[Asked] = set()
        """Methods granted to tokens since the file was read. A grant holds on every connection, with any
        certificate."""
        self.refused: Callable[[str, str], object] | None = None
        """Function called at each refusal, with ``request`` and the fault's code; None without metrics."""
        self.reload()

    def reload(self) -> None:
        """Reads the file again, for all requests read from now on. Raises as ``__init__``, and changes nothing then."""
        callers = load(self.file)
        self._by_certificate = {caller.certificate: caller for caller in callers if caller.certificate}
        self._by_token = {caller.token_digest: caller for caller in callers if caller.token_digest}
        self.granted = set()  # assigned last: a thread that sees this set also sees the new callers

    def check(self, needed: Right, shown: Shown, certificate: str) -> None:
        """Returns if a request may be answered; otherwise raises Unauthenticated or PermissionDenied.

        ``certificate`` is the common name in the certificate of the request's connection, or empty. An unknown token is
        refused even if the certificate would suffice. Takes some microseconds.
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
    """Check of the callers of one server's methods. Any thread may use it."""

    def __init__(self, access: Access, rights: Mapping[bytes, Right]) -> None:
        """``rights`` has the right that each method needs, by the method's path."""
        self.access = access
        """The callers. A request in ``access.granted`` needs no ``check``."""
        self._rights = rights

    def check(self, path: bytes, shown: Shown, certificate: str) -> None:
        """Returns if the method may be answered; otherwise raises Unauthenticated, PermissionDenied or
        UnknownMethod.
        """
        granted = self.access.granted
        if (path, shown) in granted:
            return
        needed = self._rights.get(path)
        if needed is None:
            raise UnknownMethod("no such method")
        self.access.check(needed, shown, certificate)
        judged = shown is not None and needed is not Right.ANYONE  # else strangers would fill ``granted``
        if judged and not certificate:  # otherwise the certificate, and not the token, may have the right
            granted.add((path, shown))


def load(path: Path) -> tuple[Caller, ...]:
    """The callers of a file, in the file's order. Raises UsageError, which names the file and the line or key, and
    shows no value.
    """
    file = str(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError("--access", file, f"a readable file ({error.strerror})") from error
    except (ValueError, RecursionError):  # its text might quote the file
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
    """The caller of one table of the file."""
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
