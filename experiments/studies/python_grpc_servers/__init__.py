"""Comparison of our gRPC server with other gRPC servers for Python, by one service and the same clients."""

from experiments.studies.python_grpc_servers import answers
from experiments.studies.python_grpc_servers.sweep import PEERS, STUDY, sweep
from experiments.studies.study import Part, Scale, Study

PYTHON_GRPC_SERVERS = Study(
    name=STUDY,
    question="Which gRPC server for Python answers how many calls, at which processor time?",
    parts={
        STUDY: Part(
            title="One greeter on each gRPC server, at 1 to 256 connections",
            sweep=sweep,
            pictures=answers.pictures,
            answers=answers.answers,
            sections=answers.sections,
            peers=PEERS,
        )
    },
    scales={
        "smoke": Scale(rounds=1, looks=(2,), clients=(1,)),
        "quick": Scale(rounds=1, looks=(10, 14), clients=(1,)),
        "paper": Scale(rounds=1, looks=(10, 14, 20), clients=(1,)),
    },
)
