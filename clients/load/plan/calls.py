"""Request types for the unary methods of any gRPC service (option ``--call``). ``called`` makes a ``RequestType`` from
a method's name and a request in JSON.

The method's message types come from the server (gRPC server reflection), or from a .proto file that protoc compiles. In
both cases, the result is a ``FileDescriptorSet``. A reply is valid if the reply's bytes decode as the method's response
type.

Left out: streaming methods, reflection over TLS or with metadata, and a check of a reply's content. Sources: gRPC's
``doc/server-reflection.md`` (the protocol's version in grpcio is v1alpha), and protobuf's JSON mapping.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from clients.load.plan.load_plan import RequestType
from stock_service.rpc.errors import InternalFault, Unavailable, UsageError
from stock_service.rpc.option_types import meant, shown_address
from stock_service.rpc.transports import Address
from stock_service.rpc.wire.grpc_status import status_fault
from stock_service.trading.model import Status

COMPILE_S = 30.0
"""Longest time that protoc may take, in seconds. protoc usually takes some 0.1 s."""


@dataclass(frozen=True, slots=True)
class Decodes:
    """Check of a reply: the reply's bytes must decode as a message of one type. The object holds the type's descriptors
    as bytes, so that the object can be pickled.
    """

    files: bytes
    """A serialized ``FileDescriptorSet`` that declares the type."""
    message: str
    """Full name of the message type."""

    def __call__(self, reply: bytes) -> int:
        """Returns ``Status.OK`` if the bytes decode. Raises InternalFault if the bytes do not decode."""
        try:
            _message_class(self.files, self.message).FromString(reply)
        except DecodeError as error:
            raise InternalFault(f"a reply of {len(reply)} bytes that are no {self.message}") from error
        return Status.OK


def called(address: Address, call: str, data: str, proto: Path | None = None, timeout_s: float = 5.0) -> RequestType:
    """Makes a request type for a unary method. ``call`` is ``package.Service/Method``, and ``data`` is the request in
    JSON. The request type's name is the method's name.

    With ``proto``, protoc compiles this .proto file. Without ``proto``, the function asks the server at ``address``,
    and each question blocks for at most ``timeout_s`` seconds. Raises UsageError for an unknown method, for a streaming
    method, and for JSON that is not a request of the method. The error names the option of the command line. Raises a
    Fault, such as Unavailable, if the server does not answer.
    """
    service_name, _, method_name = call.partition("/")
    files = _reflected(address, call, timeout_s) if proto is None else _compiled(proto)
    pool = _pool(files)
    service = _service(pool, files, call, service_name)
    method = service.methods_by_name.get(method_name)
    unary = [each.name for each in service.methods if not (each.client_streaming or each.server_streaming)]
    if method is None or method_name not in unary:
        what = "a unary method" if method is None else "a unary method, which this is not"
        raise UsageError("--call", call, f"{what}; {service_name} has {', '.join(unary) or 'none'}")
    request = GetMessageClass(method.input_type)()
    try:
        json_format.Parse(data, request, descriptor_pool=pool)
        payload = request.SerializeToString()
    except (json_format.ParseError, ValueError) as error:  # EncodeError is a ValueError: a required field is missing
        allowed = f"JSON that is a {method.input_type.full_name}: {error}"
        raise UsageError("--data", data, " ".join(allowed.split())) from error
    check = Decodes(files.SerializeToString(), method.output_type.full_name)
    return RequestType(method_name, f"/{call}", (payload,), check)


def _service(pool: DescriptorPool, files: FileDescriptorSet, call: str, name: str) -> ServiceDescriptor:
    """Returns the service ``name`` from the pool. If the pool does not have the service, raises UsageError, which lists
    the services of ``files``.
    """
    try:
        return pool.FindServiceByName(name)
    except KeyError as error:
        names = [f"{file.package}.{each.name}".lstrip(".") for file in files.file for each in file.service]
        raise _unknown(call, names) from error


def _unknown(call: str, services: list[str]) -> UsageError:
    """Makes the UsageError for a call of an unknown service. The error names the known services, and suggests a similar
    method."""
    asked_for = sorted(name for name in services if not name.startswith("grpc.reflection."))
    like = meant(call, [f"{name}/{call.rpartition('/')[2]}" for name in asked_for])
    return UsageError("--call", call, f"a method of {', '.join(asked_for) or 'a service, and there is none'}{like}")


def _pool(files: FileDescriptorSet) -> DescriptorPool:
    """Makes a pool of the types that these files declare. In ``files``, each file must come after the files that it
    imports."""
    pool = DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


@lru_cache(maxsize=8)
def _message_class(files: bytes, name: str) -> type[Message]:
    """Returns the class of the message type ``name``. The cache keeps the 8 classes that the process used last."""
    return GetMessageClass(_pool(FileDescriptorSet.FromString(files)).FindMessageTypeByName(name))


# ---- sources of the descriptors


_WARNING = re.compile(r"WARNING: |W\d{4} ")
"""Beginning of a protoc warning. Error texts leave out warnings, since a UsageError shows only 300 characters. For a
file without a ``syntax`` statement, protoc writes a longer warning before the error. This warning would hide the error.
"""


def _compiled(proto: Path) -> FileDescriptorSet:
    """Compiles a .proto file, and returns the descriptors of the file and of its imports. protoc looks for an imported
    file in the .proto file's folder, and then in the current folder. Blocks for ``COMPILE_S`` at most.

    Raises UsageError if grpcio-tools is not installed, or if protoc refuses the file.
    """
    if find_spec("grpc_tools") is None:
        raise UsageError("--proto", str(proto), "with grpcio-tools installed (pip install grpcio-tools), or no --proto")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto.parent}", "-I.", "--include_imports"]
    ended = subprocess.run(
        [*command, "--descriptor_set_out=/dev/stdout", str(proto)], capture_output=True, timeout=COMPILE_S
    )
    if ended.returncode:
        lines = ended.stderr.decode(errors="replace").splitlines()
        said = " ".join(" ".join(line for line in lines if not _WARNING.match(line)).split())
        raise UsageError("--proto", str(proto), f"a file that protoc compiles: {said}")
    return FileDescriptorSet.FromString(ended.stdout)


def _reflected(address: Address, call: str, timeout_s: float) -> FileDescriptorSet:
    """Asks the server which file declares the service, and returns the descriptors of this file and of its imports. In
    the result, each file comes after the files that it imports.

    Raises UsageError for an unknown service, or for a server without reflection. Raises a Fault, such as Unavailable,
    if the server does not answer.
    """
    where = shown_address(address)
    with grpc.insecure_channel(where, [("grpc.enable_retries", 0)]) as channel:
        server = _Reflection(ServerReflectionStub(channel), timeout_s)
        files: dict[str, FileDescriptorProto] = {}
        try:
            server.add(files, ServerReflectionRequest(file_containing_symbol=call.partition("/")[0]))
            if not files:
                raise _unknown(call, server.services())
            while missing := _imported(files) - files.keys():
                server.add(files, ServerReflectionRequest(file_by_filename=min(missing)))
                if missing <= _imported(files) - files.keys():
                    raise Unavailable(f"{where} does not say what is in {min(missing)}: give --proto FILE")
        except grpc.RpcError as error:
            raise _explained(cast(grpc.Call, error), call, where) from error
    order = TopologicalSorter({name: tuple(file.dependency) for name, file in files.items()}).static_order()
    return FileDescriptorSet(file=[files[name] for name in order])


def _imported(files: dict[str, FileDescriptorProto]) -> set[str]:
    """Names of all files that the given files import."""
    return {name for file in files.values() for name in file.dependency}


def _explained(error: grpc.Call, call: str, where: str) -> Exception:
    """Makes the error to raise after a failed reflection question. If the server has no reflection, the error is a
    UsageError that advises ``--proto``. For any other gRPC status, the error is the status's Fault.
    """
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return UsageError("--call", call, f"beside --proto FILE, as the server at {where} has no reflection")
    return status_fault(error.code().value[0], error.details() or "", where)


class _Reflection:
    """Client of a server's reflection service. Each question to the service blocks for ``timeout_s`` at most. A
    question that fails raises grpc.RpcError.
    """

    def __init__(self, stub: ServerReflectionStub, timeout_s: float) -> None:
        self._stub = stub
        self._timeout_s = timeout_s

    def add(self, files: dict[str, FileDescriptorProto], question: ServerReflectionRequest) -> None:
        """Asks one question, and adds the files of the answer to ``files``, by file name. Adds no file if the server
        does not have the symbol or the file of the question."""
        for reply in self._stub.ServerReflectionInfo(iter([question]), timeout=self._timeout_s):
            for serialized in reply.file_descriptor_response.file_descriptor_proto:
                file = FileDescriptorProto.FromString(serialized)
                files[file.name] = file

    def services(self) -> list[str]:
        """Names of all services that the server declares."""
        question = ServerReflectionRequest(list_services="")
        replies = self._stub.ServerReflectionInfo(iter([question]), timeout=self._timeout_s)
        return [service.name for reply in replies for service in reply.list_services_response.service]
