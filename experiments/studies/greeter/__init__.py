"""The greeter of gRPC: its latency with one client, its throughput with one and with two.

In C++ as in the original, and in Python. What is measured stands in ``sweeps``; what is computed of it in ``rates``;
what is said in ``answers``, ``claims`` and ``tables``; how it is drawn in ``figures``; the document's own numbers in
``original``.
"""

from experiments.studies.greeter import answers, claims, figures, original, sweeps, tables
from experiments.studies.study import Part, Scale, Study

GREETER = Study(
    name="greeter",
    question="How long does a call of gRPC's greeter take, and how many does a server answer with one client and two?",
    document="a student's report on gRPC's example `helloworld`, “Lab 1 - RPC”",
    parts={
        "greeter": Part(
            title="gRPC's greeter in C++ and in Python: round trips, throughput, clocks, call styles",
            sweep=sweeps.greeter,
            pictures=figures.pictures,
            answers=answers.answers,
            claims=claims.claims,
            sections=tables.sections,
            peers=(sweeps.PEER,),
            runs=lambda scale: (sweeps.cold(scale),),
        )
    },
    scales={
        "smoke": Scale(rounds=1, looks=(2,), clients=original.CLIENTS),
        "quick": Scale(rounds=4, looks=(10, 14), clients=original.CLIENTS),
        "paper": Scale(rounds=10, looks=(12, 16, 20), clients=original.CLIENTS),
    },
)
