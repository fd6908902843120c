"""The client of the transports on grpcio: its blocking one."""

import time
from typing import cast

import grpc

from stock_service.rpc.errors import Fault, Unavailable
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.wire.grpc_status import status_fault

_READY = grpc.ChannelConnectivity.READY.value[0]
_UNREACHABLE = grpc.ChannelConnectivity.TRANSIENT_FAILURE.value[0]


class GrpcConnection:
    """See ``transports.Connection``. Made by ``connect``. Its channel is not shared with any other connection."""

    def __init__(self, address: tuple[str, int], credentials: ClientCredentials = NO_CREDENTIALS) -> None:
        """Raises UsageError for credentials that cannot be used."""
        self._target = shown_address(address)
        self._metadata = (("authorization", f"Bearer {credentials.token}"),) if credentials.token else None
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        if credentials.authority is None:
            self._channel = grpc.insecure_channel(self._target, options)
        else:
            pems = credentials.pems()
            encrypting = grpc.ssl_channel_credentials(pems.authority, pems.key or None, pems.certificate or None)
            self._channel = grpc.secure_channel(self._target, encrypting, options)
        self._calls: dict[str, grpc.UnaryUnaryMultiCallable[bytes, bytes]] = {}

    def open(self, timeout_s: float) -> None:
        """Waits until the channel is connected. Raises Unavailable.

        Asks the channel's core itself: ``channel_ready_future`` leaves a watch behind that keeps ``close`` waiting for
        up to 200 ms, and starts a thread for it.
        """
        core = self._channel._channel  # type: ignore[attr-defined]
        deadline_s = time.clock_gettime(time.CLOCK_REALTIME) + timeout_s  # the clock of gRPC core's deadlines
        while (state := core.check_connectivity_state(True)) != _READY:
            if state == _UNREACHABLE:
                self.close()
                raise Unavailable(f"no connection to {self._target}: it cannot be reached")
            if not core.watch_connectivity_state(state, deadline_s).success:
                self.close()
                raise Unavailable(f"no connection to {self._target} within {timeout_s:g} s")

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


def connect(
    address: tuple[str, int], timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS
) -> GrpcConnection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most; raises Unavailable."""
    connection = GrpcConnection(address, credentials)
    connection.open(timeout_s)
    return connection


def _fault(error: grpc.RpcError, target: str) -> Fault:
    """grpcio's error as a fault of ours."""
    call = cast(grpc.Call, error)  # which is what the blocking client raises
    return status_fault(call.code().value[0], call.details() or "", target)
