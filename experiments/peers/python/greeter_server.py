"""The greeter as anybody would write it with grpcio: a servicer on a ``ThreadPoolExecutor``, and nothing of ours.

    python -m experiments.peers.python.greeter_server --workers 10 --port 50051

It is somebody else's server for ``recommend``: no reflection, no ready line, and none of what this project does around
grpcio. SIGTERM ends it.
"""

import argparse
from concurrent import futures

import grpc

from experiments.helloworld import greeter_pb2, greeter_pb2_grpc


class Greeter(greeter_pb2_grpc.GreeterServicer):
    """Says hello."""

    def SayHello(  # noqa: N802
        self, request: greeter_pb2.HelloRequest, context: grpc.ServicerContext
    ) -> greeter_pb2.HelloReply:
        """``Hello NAME``."""
        return greeter_pb2.HelloReply(message=f"Hello {request.name}")


def main() -> None:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser(description="The greeter of gRPC's examples, on grpcio alone.")
    parser.add_argument("--workers", type=int, default=10, help="threads of the pool (default: 10)")
    parser.add_argument("--port", type=int, default=50051, help="where to listen, on 127.0.0.1 (default: 50051)")
    options = parser.parse_args()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=options.workers))
    greeter_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)
    server.add_insecure_port(f"127.0.0.1:{options.port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
