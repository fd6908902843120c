"""Client of the gRPC transports: grpcio's blocking client."""

from typing import cast

import grpc

from stock_service.rpc.errors import Fault, Unavailable
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.wire.grpc_status import status_fault

_NO_METHOD = "/none/None"

_NOT_CONNECTED = {
    grpc.StatusCode.UNAVAILABLE: ": it cannot be reached",
    grpc.StatusCode.DEADLINE_EXCEEDED: " within {:g} s",
}
"""grpcio's statuses of a call without a connection to the server. Each status has the last words of the fault's text.
"""


class GrpcConnection:
    """Client's connection to a gRPC server, with a grpcio channel of its own (``transports.Connection``)."""

    def __init__(
        self, address: tuple[str, int], timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS
    ) -> None:
        """Blocks until the connection is made. Raises Unavailable, and UsageError for credentials that cannot be
        used.
        """
        self._target = shown_address(address)
        token = (("authorization", f"Bearer {credentials.token}"),) if credentials.token else ()
        self._metadata = (*token, *credentials.metadata) or None
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        if credentials.authority is None:
            self._channel = grpc.insecure_channel(self._target, options)
        else:
            pems = credentials.pems()
            encrypting = grpc.ssl_channel_credentials(pems.authority, pems.key or None, pems.certificate or None)
            self._channel = grpc.secure_channel(self._target, encrypting, options)
        self._calls: dict[str, grpc.UnaryUnaryMultiCallable[bytes, bytes]] = {}
        self._open(timeout_s)

    def _open(self, timeout_s: float) -> None:
        """Waits until the channel is connected. Raises Unavailable.

        Calls a method that no server has. Even a refusal shows that the channel is connected. grpcio's own function,
        ``channel_ready_future``, is slower: it starts a thread for each channel, and ``close`` then waits up to 200 ms
        for this thread.
        """
        no_method: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(_NO_METHOD)
        try:
            no_method(b"", timeout_s)
        except grpc.RpcError as error:
            why = _NOT_CONNECTED.get(cast(grpc.Call, error).code())
            if why is not None:
                self.close()
                raise Unavailable(f"no connection to {self._target}{why.format(timeout_s)}") from error

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        call = self._calls.get(path)
        if call is None:
            call = self._calls[path] = self._channel.unary_unary(path)
        try:
            return call(payload, timeout_s, self._metadata)
        except grpc.RpcError as error:
            raise _fault(error, self._target) from error

    def close(self) -> None:
        self._channel.close()


connect = GrpcConnection
"""Opens a connection to a gRPC server, and blocks until the connection is made."""


def _fault(error: grpc.RpcError, target: str) -> Fault:
    """Converts grpcio's error to a fault. ``target`` is the server's address."""
    call = cast(grpc.Call, error)  # each error of the blocking client is also a Call
    return status_fault(call.code().value[0], call.details() or "", target)
