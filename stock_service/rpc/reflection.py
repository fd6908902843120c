"""Server reflection of gRPC (``grpc.reflection.v1alpha`` and ``v1``): answers clients' questions about services and
messages.

Source: ``grpc/reflection/v1/reflection.proto``. The messages of the two versions differ only in the package's name. The
answers are the descriptors that protobuf has loaded. protobuf's descriptor pool finds services and messages by name,
but not methods. The load generator ghz asks for methods, so this module also finds methods.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from stock_service.rpc.call import Call
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.health import HEALTH
from stock_service.rpc.security import Right
from stock_service.rpc.service import StreamMethod

_V1ALPHA, _V1 = (f"grpc.reflection.{version}.ServerReflection" for version in ("v1alpha", "v1"))

REFLECTION = tuple(f"/{service}/ServerReflectionInfo" for service in (_V1ALPHA, _V1))
"""Paths of reflection's method in both versions."""


def reflection(service_name: str) -> Mapping[str, StreamMethod[Any, Any]]:
    """Makes the method of reflection for a server of the service ``service_name``. Returns this method under the paths
    of both versions. Callers need the right TRADER.
    """
    names = sorted((service_name, HEALTH, _V1ALPHA))

    def reflect(asked: ServerReflectionRequest, _: Call) -> Iterator[ServerReflectionResponse]:
        answer = ServerReflectionResponse(valid_host=asked.host, original_request=asked)
        try:
            _fill(asked, answer, names)
        except KeyError:
            answer.error_response.error_code = int(FaultCode.NOT_FOUND)
            answer.error_response.error_message = "not found"
        yield answer

    method = StreamMethod(ServerReflectionRequest, ServerReflectionResponse, reflect, talks=True, right=Right.TRADER)
    return dict.fromkeys(REFLECTION, method)


def _fill(asked: ServerReflectionRequest, answer: ServerReflectionResponse, names: list[str]) -> None:
    """Fills the answer's field for this kind of question. Raises KeyError for an unknown name."""
    pool = descriptor_pool.Default()
    match asked.WhichOneof("message_request"):
        case "file_by_filename":
            _add(pool.FindFileByName(asked.file_by_filename), answer)
        case "file_containing_symbol":
            _add(_file_of(asked.file_containing_symbol), answer)
        case "file_containing_extension":
            extended = asked.file_containing_extension
            message = pool.FindMessageTypeByName(extended.containing_type)
            extension = pool.FindExtensionByNumber(message, extended.extension_number)
            _add(pool.FindFileContainingSymbol(extension.full_name), answer)
        case "all_extension_numbers_of_type":
            message = pool.FindMessageTypeByName(asked.all_extension_numbers_of_type)
            numbers = answer.all_extension_numbers_response
            numbers.base_type_name = message.full_name
            numbers.extension_number.extend(sorted(each.number for each in pool.FindAllExtensions(message)))
        case "list_services":
            for name in names:
                answer.list_services_response.service.add(name=name)
        case _:
            answer.error_response.error_code = int(FaultCode.INVALID_ARGUMENT)
            answer.error_response.error_message = "no question"


def _file_of(symbol: str) -> FileDescriptor:
    """Finds the file that defines a symbol, which may be a service's method. Raises KeyError."""
    pool = descriptor_pool.Default()
    try:
        return pool.FindFileContainingSymbol(symbol)
    except KeyError:
        service_name, _, method = symbol.rpartition(".")
        return pool.FindServiceByName(service_name).methods_by_name[method].containing_service.file


def _add(file: FileDescriptor, answer: ServerReflectionResponse) -> None:
    """Adds a file to an answer, and all files that the file imports, directly or indirectly."""
    needed: dict[str, FileDescriptor] = {}
    pending = [file]
    while pending:
        each = pending.pop()
        if each.name not in needed:
            needed[each.name] = each
            pending += each.dependencies
    answer.file_descriptor_response.file_descriptor_proto.extend(each.serialized_pb for each in needed.values())
