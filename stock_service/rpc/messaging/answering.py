"""A request's message to its reply's, whatever library carried it; and which of a server's limits a library keeps."""

from stock_service.rpc.errors import FaultCode, UsageError
from stock_service.rpc.server_core.options import Address, ServeOptions
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.messages import call_of, cut_request, encode_reply

DROPPED_TIMES = 4
"""Times ``frame_bytes_max``: a library drops who sends more. It must be over 1, or a client is never told why."""

_DEFAULTS = ServeOptions()


class Messages:
    """What answers messages; see ``server_core.protocol.Answers``. A message over ``frame_bytes_max`` is refused."""

    def __init__(self, methods: Methods, frame_bytes_max: int) -> None:
        self._methods = methods
        self._frame_bytes_max = frame_bytes_max

    def answer(self, message: bytes, arrived_ns: int, peer: Address) -> bytes:
        """See ``Answers.answer``."""
        if len(message) > self._frame_bytes_max:
            detail = f"a request of {len(message)} bytes, allowed: {self._frame_bytes_max}"
            return self.refusal(message, FaultCode.INVALID_ARGUMENT, detail)
        try:
            call, timeout_ms, name, payload = cut_request(message)
        except FramingError as error:
            return encode_reply(0, FaultCode.INVALID_ARGUMENT, str(error).encode())
        return encode_reply(call, *self._methods.answered(name, payload, timeout_ms, arrived_ns, peer))

    def path(self, message: bytes) -> bytes:
        """See ``Answers.path``."""
        try:
            return cut_request(message).method
        except FramingError:
            return b""

    def refusal(self, message: bytes, code: FaultCode, detail: str) -> bytes:
        """See ``Answers.refusal``."""
        return encode_reply(call_of(message), code, detail.encode())


def check_kept(options: ServeOptions, unkept: tuple[str, ...], library: str) -> None:
    """Raises UsageError where a limit is set that the library does not let its transport keep."""
    for name in unkept:
        given, default = getattr(options, name), getattr(_DEFAULTS, name)
        if given != default:
            allowed = f"to leave it out: {library} lets no server keep this limit"
            raise UsageError(f"--{name.replace('_', '-')}", given, allowed)
