"""What a request costs the server in processor time, and what a server takes while nobody asks anything of it."""

from experiments.studies.server_cost.answers import answers, pictures, sections
from experiments.studies.server_cost.sweeps import alone, server_cost
from experiments.studies.study import Part, Scale, Study

SERVER_COST = Study(
    name="server_cost",
    question="What does a request cost the server in processor time: gRPC against sockets, and against a bare echo?",
    parts={
        "server_cost": Part(
            title="Processor time a request at 16 kept connections, and servers by themselves",
            sweep=server_cost,
            pictures=pictures,
            answers=answers,
            sections=sections,
            alone=alone,
        )
    },
    scales={
        "smoke": Scale(rounds=2, looks=(2,), clients=(1,)),
        "quick": Scale(rounds=15, looks=(10, 14), clients=(1,)),
        "paper": Scale(rounds=15, looks=(10, 14, 20), clients=(1,)),
    },
)
