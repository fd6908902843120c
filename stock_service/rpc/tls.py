"""TLS by the standard library: a server's certificate, which may be replaced while the server serves, and a client's
credentials.

TLS 1.2 and 1.3. If a server has an authority for clients, every client must have a certificate that the authority
signed (mTLS). Private keys must not be encrypted, since nobody can enter a passphrase when a server starts. No error
and no ``repr`` of this module shows a file's content.
"""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stock_service.rpc.errors import UsageError
from stock_service.rpc.security import TOKEN, TOKEN_BYTES_MAX, Metadata

_NO_PASSPHRASE = ""
"""Empty passphrase, which OpenSSL tries for an encrypted key. Otherwise OpenSSL would ask for a passphrase on the
terminal.
"""


@dataclass(frozen=True, slots=True)
class Pems:
    """Contents of the PEM files of a server or a client. grpcio takes these contents, and not the files' paths. An
    attribute is empty if there is no such file.
    """

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    authority: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of a server's PEM files: its certificate with chain, its private key, and the authority of its clients."""

    certificate: Path
    key: Path
    client_authority: Path | None = None
    """Authority that must have signed the clients' certificates; None if clients need no certificate."""


class ServerTls:
    """Certificate and TLS context of a server. Thread-safe, but only one thread at a time may ``reload``."""

    def __init__(self, files: TlsFiles, protocols: Sequence[str] = ()) -> None:
        """``protocols`` are the protocol names that the server accepts in ALPN. Raises UsageError for files that cannot
        be used.
        """
        self.files = files
        self._protocols = list(protocols)
        self.reload()

    def reload(self) -> None:
        """Reads the files again, for new connections. Open connections continue with the old certificate. If a file
        cannot be used, raises UsageError and changes nothing.
        """
        files = self.files
        pems = Pems(
            _read("--tls-cert", files.certificate),
            _read("--tls-key", files.key),
            b"" if files.client_authority is None else _read("--tls-client-ca", files.client_authority),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        if self._protocols:
            context.set_alpn_protocols(self._protocols)
        _load_pair(context, files.certificate, files.key)
        if files.client_authority is not None:
            _load_authority("--tls-client-ca", context, files.client_authority)
            context.verify_mode = ssl.CERT_REQUIRED
        self.context, self.pems = context, pems


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Authority that a client trusts, and certificate, token and metadata that the client shows to a server."""

    authority: Path | None = None
    """Authority that must have signed the server's certificate; None for a connection without TLS."""
    certificate: Path | None = None
    key: Path | None = None
    token: str = field(default="", repr=False)
    metadata: Metadata = field(default=(), repr=False)

    def context(self, protocols: Sequence[str] = ()) -> ssl.SSLContext | None:
        """Makes the TLS context for connections; None for connections without TLS. ``protocols`` are ALPN names. Raises
        UsageError for files that cannot be used.
        """
        if self.authority is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if protocols:
            context.set_alpn_protocols(list(protocols))
        _load_authority("--tls-ca", context, self.authority)
        if self.certificate is not None and self.key is not None:
            _load_pair(context, self.certificate, self.key)
        return context

    def pems(self) -> Pems:
        """Reads the contents of the files. Raises UsageError for files that cannot be used."""
        self.context()  # raises UsageError if a file cannot be used
        own = self.certificate is not None and self.key is not None
        return Pems(
            _read("--tls-cert", self.certificate) if own and self.certificate else b"",
            _read("--tls-key", self.key) if own and self.key else b"",
            b"" if self.authority is None else _read("--tls-ca", self.authority),
        )


NO_CREDENTIALS = ClientCredentials()
"""Credentials of a connection without TLS, without a token and without metadata."""


def read_token(file: Path) -> str:
    """Reads a token from a file. The file may end in a newline. Raises UsageError, whose text never shows the token."""
    raw = _read("--token-file", file)
    token = raw.decode("ascii", "replace").strip()
    if len(raw) > TOKEN_BYTES_MAX + 2 or not TOKEN.fullmatch(token):
        raise UsageError("--token-file", str(file), "a file with a token, 16 to 256 characters of A-Za-z0-9._~+/-=")
    return token


@contextmanager
def _refused(option: str, files: object, allowed: str) -> Iterator[None]:
    """Converts an ssl.SSLError or OSError inside the ``with`` statement to a UsageError that states the reason.

    ``option`` and ``files`` name the option and its files. ``allowed`` describes valid files.
    """
    try:
        yield
    except ssl.SSLError as error:
        raise UsageError(option, str(files), f"{allowed} ({error.reason or 'not PEM'})") from error
    except OSError as error:
        raise UsageError(option, str(files), f"a readable file ({error.strerror})") from error


def _read(option: str, file: Path) -> bytes:
    with _refused(option, file, ""):
        return file.read_bytes()


def _load_pair(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    allowed = "a certificate and its own private key, unencrypted, in PEM"
    with _refused("--tls-cert, --tls-key", f"{certificate}, {key}", allowed):
        context.load_cert_chain(certificate, key, _NO_PASSPHRASE)


def _load_authority(option: str, context: ssl.SSLContext, file: Path) -> None:
    with _refused(option, file, "certificates in PEM"):
        context.load_verify_locations(file)


def named_in(certificate: object) -> str:
    """Returns the common name in ``certificate``, which is a result of ``SSLObject.getpeercert``. Empty if the
    certificate has none, or several common names.
    """
    if not isinstance(certificate, dict):
        return ""
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return str(names[0]) if len(names) == 1 else ""
