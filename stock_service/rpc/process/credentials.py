"""Credentials for a first try of a server with TLS and access control. The command makes an authority, certificates
that the authority has signed, tokens, and an access list.

    python -m stock_service credentials FOLDER

For development only: the authority's key is in the same folder as the certificates, unencrypted. Only the owner can
read the folder, the keys and the tokens. This module needs the extra ``tls`` (cryptography); a server with TLS does
not.
"""

import datetime
import ipaddress
import os
import secrets
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from stock_service.rpc.errors import UsageError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError as missing:
    if missing.name != "cryptography":
        raise
    raise UsageError("credentials", None, "with cryptography, of the extra tls: make install") from missing

LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names and addresses that a server's certificate always has."""

CALLERS = ("admin", "trader")
"""Names of the callers that get a certificate and a token. ``admin`` gets the right ADMIN; any other caller gets the
right TRADER.
"""

DAYS = 30
"""Default number of days for which certificates are valid."""

_TOKEN_BYTES = 32
"""Number of random bytes of a token. Nobody can guess 256 bits."""

_CLOCK_SKEW = datetime.timedelta(minutes=5)
"""Certificates become valid this length of time before they are made, since the clocks of other machines may be slow.
"""


_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def make(folder: Path, hosts: Sequence[str] = (), days: int = DAYS, callers: Sequence[str] = CALLERS) -> None:
    """Writes keys, certificates, tokens and an access list into a folder, which must be new or empty.

    The server's certificate names ``hosts`` in addition to ``LOCAL``. Raises UsageError for a folder or a host that
    cannot be used.
    """
    names = x509.SubjectAlternativeName([_general_name(host) for host in dict.fromkeys((*LOCAL, *hosts))])
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError("FOLDER", str(folder), "a folder that is new or empty: no file is overwritten")
        folder.chmod(0o700)  # also an existing folder: another writer could replace the keys in it
        _fill(folder, names, days, callers)
    except OSError as error:
        raise UsageError("FOLDER", str(folder), f"a folder that can be written ({error.strerror})") from error


def _fill(folder: Path, names: x509.SubjectAlternativeName, days: int, callers: Sequence[str]) -> None:
    authority = _Authority(days)
    _write(folder / "ca.pem", authority.pem, 0o644)
    _write(folder / "ca-key.pem", _key_pem(authority.key), 0o600)
    authority.sign_into(folder, "server", x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), names)
    tables = []
    for caller in callers:
        authority.sign_into(folder, caller, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        _write(folder / f"{caller}.token", f"{token}\n".encode(), 0o600)
        digest = sha256(token.encode()).hexdigest()
        right = "admin" if caller == "admin" else "trader"
        keys = f'name = "{caller}"\nright = "{right}"\ntoken_sha256 = "{digest}"\ncertificate = "{caller}"\n'
        tables.append(f"[[callers]]\n{keys}")
    _write(folder / "access.toml", "\n".join(tables).encode(), 0o644)


def _general_name(host: str) -> x509.GeneralName:
    """Makes a certificate's entry for a host, by address or name. Raises UsageError."""
    if not host:
        raise UsageError("--hosts", host, "names and addresses, in ASCII")
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise UsageError("--hosts", host, "names and addresses, in ASCII") from error


class _Authority:
    """Certificate authority: a key that signs certificates, and the authority's own certificate."""

    def __init__(self, days: int) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("stock_service development")
        now = datetime.datetime.now(datetime.UTC)
        self._from = now - _CLOCK_SKEW
        self._until = self._from + datetime.timedelta(days=days)
        self.pem = self._signed(self._name, self.key, x509.BasicConstraints(True, 0), _SIGNS_CERTIFICATES)

    def sign_into(self, folder: Path, name: str, *extensions: x509.ExtensionType) -> None:
        """Makes a key and a certificate for a common name, and writes both into a folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = self._signed(_name(name), key, x509.BasicConstraints(False, None), *extensions)
        _write(folder / f"{name}.pem", pem, 0o644)
        _write(folder / f"{name}-key.pem", _key_pem(key), 0o600)

    def _signed(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType) -> bytes:
        """Makes a signed certificate for a public key. Returns the certificate in PEM."""
        signer = self.key.public_key()
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(self._from).not_valid_after(self._until)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
        for extension in extensions:
            says_what_it_is_for = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
            builder = builder.add_extension(extension, critical=says_what_it_is_for)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
        opened.write(content)
