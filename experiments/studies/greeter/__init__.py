"""Study of gRPC's example program "greeter": latency with one client, throughput with one and with two clients.

Latency and throughput are measured in C++, as in the original, and in Python. ``design`` has the document's numbers and
the sweeps; ``claims`` has the answers and the replication card; ``figures`` has rates and clocks, figures and tables.
"""

from experiments.studies.greeter import claims, design, figures
from experiments.studies.study import Part, Scale, Study

GREETER = Study(
    name="greeter",
    question="How long does a call of gRPC's greeter take, and how many does a server answer with one client and two?",
    document="a student's report on gRPC's example `helloworld`, “Lab 1 - RPC”",
    parts={
        "greeter": Part(
            title="gRPC's greeter in C++ and in Python: round trips, throughput, clocks, call styles",
            sweep=design.greeter,
            pictures=figures.pictures,
            answers=claims.answers,
            claims=claims.claims,
            sections=figures.sections,
            peers=(design.PEER,),
            runs=lambda scale: (design.cold(scale),),
        )
    },
    scales={
        "smoke": Scale(rounds=1, looks=(2,), clients=design.CLIENTS),
        "quick": Scale(rounds=4, looks=(10, 14), clients=design.CLIENTS),
        "paper": Scale(rounds=10, looks=(12, 16, 20), clients=design.CLIENTS),
    },
)
