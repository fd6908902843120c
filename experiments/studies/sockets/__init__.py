"""The study of seed 001: Berkeley sockets, ZeroMQ and nanomsg in C, and nanomsg's successor NNG beside them.

Its two metrics are response time, at two rates and two sizes, and throughput. What is measured stands in ``sweeps``;
what the document states as numbers in ``original``; what is said of it in ``answers``, ``claims`` and ``faults``; its
graphs are drawn in ``figures``, and lines of code are counted in ``lines``.
"""

from experiments.studies.sockets import answers, claims, figures, sweeps
from experiments.studies.study import Part, Scale, Study

SOCKETS = Study(
    name="sockets",
    question="Which socket API in C answers soonest and carries most: Berkeley sockets, ZeroMQ, nanomsg, or NNG?",
    parts={
        "sockets": Part(
            title="Socket APIs in C: response time at two rates and two sizes, and throughput",
            sweep=sweeps.sockets,
            pictures=figures.graphs,
            answers=answers.answers,
            claims=claims.claims,
            sections=answers.sections,
            peers=sweeps.PEERS,
            after=("socket_patterns",),
            received=sweeps.received,
        ),
        "socket_patterns": Part(
            title="Pair beside request-reply, on ZeroMQ and nanomsg",
            sweep=sweeps.patterns,
            answers=answers.patterns,
            peers=sweeps.PEERS,
        ),
    },
    scales={
        "smoke": Scale(rounds=2, looks=(2,), clients=(1,)),
        "quick": Scale(rounds=4, looks=(10, 14), clients=(1,)),
        "paper": Scale(rounds=180, looks=(20,), clients=(1,)),
    },
)
