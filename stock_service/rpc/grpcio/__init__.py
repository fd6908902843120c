"""What every transport on grpcio shares, so that none imports another: the blocking client, and a server's parts.

Loaded when it is asked for, as grpcio is. Left out: what speaks gRPC without grpcio, which is in ``wire``.
"""
