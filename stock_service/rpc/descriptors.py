"""protobuf's descriptors as server reflection is asked for them."""

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor


class Descriptors:
    """protobuf's descriptor pool, which also finds a method.

    The pool itself knows services and messages by name but no methods, and ghz asks for just that.
    """

    def __init__(self) -> None:
        pool = descriptor_pool.Default()
        self._pool = pool
        self.FindFileByName = pool.FindFileByName
        self.FindMessageTypeByName = pool.FindMessageTypeByName
        self.FindExtensionByNumber = pool.FindExtensionByNumber
        self.FindAllExtensions = pool.FindAllExtensions

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802  # protobuf's name
        """The file that defines a symbol, or a service's method. Raises KeyError."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service_name, _, method = symbol.rpartition(".")
            service = self._pool.FindServiceByName(service_name)
            return service.methods_by_name[method].containing_service.file
