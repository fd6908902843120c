"""Server reflection, ``grpc.reflection.v1alpha`` and ``v1``, whose messages are the same but for their package.

Source: ``grpc/reflection/v1/reflection.proto``. The descriptors are those of the messages that are loaded.
"""

from collections.abc import Sequence

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from stock_service.rpc.descriptors import Descriptors
from stock_service.rpc.errors import FaultCode, InvalidRequest
from stock_service.rpc.transports.grpc_static.health import HEALTH

_V1ALPHA = "grpc.reflection.v1alpha.ServerReflection"

REFLECTION = tuple(
    f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo".encode() for version in ("v1alpha", "v1")
)


class Reflection:
    """Any thread may ask it."""

    def __init__(self, service_name: str) -> None:
        self._names = sorted((service_name, HEALTH, _V1ALPHA))
        self._descriptors = Descriptors()

    def answer(self, payload: bytes, ends: bool) -> Sequence[bytes]:
        """The answer to a question; none to the end of them. Raises a Fault."""
        if ends:
            return []
        try:
            asked = ServerReflectionRequest.FromString(payload)
        except DecodeError as error:
            raise InvalidRequest(f"{len(payload)} bytes that are no ServerReflectionRequest") from error
        answer = ServerReflectionResponse(valid_host=asked.host, original_request=asked)
        try:
            self._fill(asked, answer)
        except KeyError:
            answer.error_response.error_code = int(FaultCode.NOT_FOUND)
            answer.error_response.error_message = "not found"
        return [answer.SerializeToString()]

    def _fill(self, asked: ServerReflectionRequest, answer: ServerReflectionResponse) -> None:
        """The answer's own part. Raises KeyError for what is not there."""
        descriptors = self._descriptors
        match asked.WhichOneof("message_request"):
            case "file_by_filename":
                _add(descriptors.FindFileByName(asked.file_by_filename), answer)
            case "file_containing_symbol":
                _add(descriptors.FindFileContainingSymbol(asked.file_containing_symbol), answer)
            case "file_containing_extension":
                extended = asked.file_containing_extension
                message = descriptors.FindMessageTypeByName(extended.containing_type)
                extension = descriptors.FindExtensionByNumber(message, extended.extension_number)
                _add(descriptors.FindFileContainingSymbol(extension.full_name), answer)
            case "all_extension_numbers_of_type":
                message = descriptors.FindMessageTypeByName(asked.all_extension_numbers_of_type)
                numbers = answer.all_extension_numbers_response
                numbers.base_type_name = message.full_name
                numbers.extension_number.extend(sorted(each.number for each in descriptors.FindAllExtensions(message)))
            case "list_services":
                for name in self._names:
                    answer.list_services_response.service.add(name=name)
            case _:
                answer.error_response.error_code = int(FaultCode.INVALID_ARGUMENT)
                answer.error_response.error_message = "no question"


def _add(file: FileDescriptor, answer: ServerReflectionResponse) -> None:
    """A file and all that it needs."""
    needed: dict[str, FileDescriptor] = {}
    pending = [file]
    while pending:
        each = pending.pop()
        if each.name not in needed:
            needed[each.name] = each
            pending += each.dependencies
    answer.file_descriptor_response.file_descriptor_proto.extend(each.serialized_pb for each in needed.values())
