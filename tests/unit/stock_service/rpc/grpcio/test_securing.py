"""Certificates given to gRPC core at a handshake."""

import shutil
from pathlib import Path

import grpc

from stock_service.rpc.grpcio.securing import Renewing
from stock_service.rpc.process.credentials import make
from tests.tls import credentials, server_tls


def test_core_is_given_nothing_until_files_are_new(tmp_path: Path) -> None:
    """gRPC core gets new files once, and nothing before. A replacement at each handshake ends the process, by a fault
    of gRPC core."""
    for name in ("server.pem", "server-key.pem"):
        shutil.copy(credentials() / name, tmp_path / name)
    tls = server_tls(tmp_path)
    renewing = Renewing(tls, tls.pems)
    tls.reload()
    assert [renewing() for _ in range(3)] == [None] * 3
    make(tmp_path / "new")
    for name in ("server.pem", "server-key.pem"):
        shutil.copy(tmp_path / "new" / name, tmp_path / name)
    tls.reload()
    assert isinstance(renewing(), grpc.ServerCertificateConfiguration)
    assert renewing() is None
