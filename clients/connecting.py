"""Options and texts that all clients share: options of the server's address and of credentials, and advice after a
fault."""

import argparse
import re
from pathlib import Path

from stock_service.rpc.errors import Fault, FaultCode, UsageError
from stock_service.rpc.process.beginning import UNREAD_EXIT
from stock_service.rpc.process.command_line import USAGE_EXIT, address, seconds
from stock_service.rpc.server_core.options import is_loopback
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials, read_token
from stock_service.rpc.transports import TRANSPORTS, Address, Connection, load

OTHER_EXIT = 1
"""Exit code for an outcome that is not OK."""

FAULT_EXIT = 3
"""Exit code if a request got no reply, or if the server refused the call instead of giving an outcome."""

DEFAULT_TRANSPORT = "grpc"

TIMEOUT_S_MAX = 60.0
"""Largest value of ``--timeout-s``, the longest wait for a reply, in seconds. The load client's histogram ends at this
time."""

NO_STOCK = "the server does not have these stocks; give its own with --stocks"
"""Advice after the outcome UNKNOWN_STOCK, for programs with the option ``--stocks``."""

_CREDENTIALS = {
    "--tls-ca": "speak TLS: certificates in PEM; one of them must have signed the server's certificate",
    "--tls-cert": "the client's own certificate, in PEM, where the server asks for one",
    "--tls-key": "the private key of the client's certificate, in PEM, unencrypted",
    "--token-file": "a file with the token that identifies the client",
}
"""Options of the credentials, each with its help text. An option names the file that has a secret, since every user of
the machine can read the options of a running program."""

_METADATA = re.compile(r"(?P<key>[a-z0-9_.-]+)=(?P<value>[!-~](?:[ -~]*[!-~])?)")
_OWN_KEYS = re.compile(
    r"grpc-.*|.*-bin|te|content-.*|user-agent|host|connection|proxy-connection|keep-alive|transfer-encoding|upgrade"
    r"|expect|authorization|timeout-ms"
)
"""Keys of metadata that the user may not set. The protocol or another option sets such a key, or the value of the key
must be bytes."""

_METADATA_BYTES_MAX, _KEY_BYTES = 15_360, 32
"""``_METADATA_BYTES_MAX``: largest size of all metadata of a request, in bytes. The lean client sends a call's headers
in one frame of at most 16 KiB. ``_KEY_BYTES``: bytes that count for each entry, in addition to key and value (as in
HTTP/2)."""

_ADVICE = {
    FaultCode.INVALID_ARGUMENT: "change the request",
    FaultCode.DEADLINE_EXCEEDED: "wait longer with --timeout-s, or find out why the server is busy",
    FaultCode.NOT_FOUND: "ask for something that the server has",
    FaultCode.RESOURCE_EXHAUSTED: "send less, or give the server higher limits",
    FaultCode.UNIMPLEMENTED: "check that --address is a stock server of this version",
    FaultCode.UNAUTHENTICATED: "identify the client: with --token-file, or with --tls-cert and --tls-key",
    FaultCode.PERMISSION_DENIED: "ask the operator of the server for the right, or use a credential that has the right",
    FaultCode.INTERNAL: "look into the server's log",
}


def exits(of_ok: str, of_fault: str) -> dict[int, str]:
    """Table of exit codes with their meanings, for a client that sends requests of the stock service. ``of_ok`` and
    ``of_fault`` are the meanings of the codes 0 and ``FAULT_EXIT``."""
    return {
        0: of_ok,
        OTHER_EXIT: "some outcome was not OK",
        USAGE_EXIT: "bad usage",
        FAULT_EXIT: of_fault,
        UNREAD_EXIT: "the reader of the output has gone",
    }


def add_options(parser: argparse.ArgumentParser, repeated: bool = False) -> None:
    """Adds ``--transport``, ``--address``, ``--timeout-s`` and the options of the client's credentials.

    ``repeated`` is True for the parser of a subcommand. Then the user may write an option before or after the
    subcommand's name. The subcommand's options have no defaults: a default would replace a value that the user wrote
    before the name.
    """

    def default(value: object) -> object:
        return argparse.SUPPRESS if repeated else value

    names = sorted(TRANSPORTS)
    parser.add_argument(
        "--transport",
        choices=names,
        metavar="NAME",
        default=default(DEFAULT_TRANSPORT),
        help=f"how to talk to the server: {', '.join(names)}",
    )
    parser.add_argument(
        "--address",
        type=address,
        metavar="HOST:PORT",
        default=argparse.SUPPRESS,
        help="where the server listens (default: this machine, the transport's default port)",
    )
    parser.add_argument(
        "--timeout-s", type=seconds(0.001, TIMEOUT_S_MAX), default=default(5.0), help="seconds to wait for a reply"
    )
    add_credentials(parser, repeated)


def add_credentials(parser: argparse.ArgumentParser, repeated: bool = False) -> None:
    """Adds the options of the client's credentials. ``repeated`` is True for the parser of a subcommand (see
    ``add_options``)."""
    default = argparse.SUPPRESS if repeated else None
    for option, help_text in _CREDENTIALS.items():
        parser.add_argument(option, type=Path, metavar="FILE", default=default, help=help_text)
    parser.add_argument(
        "--metadata",
        type=metadata,
        action="append",
        dest="more_metadata" if repeated else "metadata",  # "metadata" would replace the metadata before the command
        metavar="KEY=VALUE",
        default=default,
        help="metadata of every request, on gRPC and http1; may be repeated. Not for secrets: local users can see it",
    )


def metadata(word: str) -> tuple[str, str]:
    """Parses ``KEY=VALUE``, the argument of ``--metadata``, into key and value. Raises ArgumentTypeError."""
    found = _METADATA.fullmatch(word)
    if found is None or _OWN_KEYS.fullmatch(found["key"]):
        allowed = "KEY=VALUE in ASCII, KEY in lower case, not a key of the protocol (--token-file is for tokens)"
        raise argparse.ArgumentTypeError(f"got {word!r}, allowed: {allowed}")
    return found["key"], found["value"]


def server_address(options: argparse.Namespace) -> Address:
    """The address that the user gave, or else the default address of the transport."""
    given: Address | None = getattr(options, "address", None)
    return given or ("127.0.0.1", load(options.transport).DEFAULT_PORT)


def credential_files(options: argparse.Namespace) -> dict[str, Path | None]:
    """The file of each credentials option; None for an option that was not given."""
    return {option: getattr(options, option[2:].replace("-", "_")) for option in _CREDENTIALS}


def credentials(options: argparse.Namespace, address: Address | None = None) -> ClientCredentials:
    """The client's credentials, and the certificate authority that the client trusts. If ``address`` is None, the
    server's address comes from the options.

    Raises UsageError if a file cannot be used, or if a token would travel to another machine without TLS.
    """
    given = credential_files(options)
    authority, certificate, key, token = given.values()
    for option, file, other in (("--tls-cert", certificate, "--tls-key"), ("--tls-key", key, "--tls-cert")):
        if file is not None and (authority is None or given[other] is None):
            raise UsageError(option, str(file), f"with --tls-ca FILE and {other} FILE")
    if token is not None and authority is None and not is_loopback((address or server_address(options))[0]):
        raise UsageError("--token-file", str(token), "with --tls-ca FILE, or to a loopback address")
    sent = (*(options.metadata or ()), *getattr(options, "more_metadata", ()))
    size = sum(len(key) + len(value) + _KEY_BYTES for key, value in sent)
    if size > _METADATA_BYTES_MAX:
        allowed = f"up to {_METADATA_BYTES_MAX:,} bytes in all, where each key counts {_KEY_BYTES} more"
        raise UsageError("--metadata", f"{size:,} bytes", allowed)
    return ClientCredentials(authority, certificate, key, "" if token is None else read_token(token), sent)


def connect(options: argparse.Namespace) -> Connection:
    """A connection to the server that the options name. Blocks. Raises a Fault, and UsageError for unusable
    credentials."""
    transport, address, shown = load(options.transport), server_address(options), credentials(options)
    if shown == NO_CREDENTIALS:
        return transport.connect(address, options.timeout_s)
    return transport.connect(address, options.timeout_s, shown)


def explained(fault: Fault, transport: str) -> str:
    """Text of a fault in one line, which ends with advice for the user."""
    if fault.code is FaultCode.UNAVAILABLE:
        start = f"python -m stock_service serve --transport {transport}"
        if "connection refused" in str(fault).lower():  # from the system: no server listens
            advice = f"check --address, or start a server: {start}"
        else:
            other = "the program there may speak a different protocol, or TLS, which needs --tls-ca"
            advice = f"check --address and --transport ({other}), or start a server: {start}"
    else:
        advice = _ADVICE[fault.code]
    return f"{fault}; {advice}"
