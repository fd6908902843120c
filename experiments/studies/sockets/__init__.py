"""Study of socket APIs in C: Berkeley sockets, ZeroMQ, nanomsg and its successor NNG.

The study has two metrics: response time (at two rates and two sizes) and throughput. ``design`` has the document's
numbers and the sweeps. ``answers`` and ``claims`` have the sentences, and ``wording`` has the values and words that
both share. ``figures`` has the graphs, and a table of the document's faults.
"""

from experiments.studies.sockets import answers, claims, design, figures
from experiments.studies.study import Part, Scale, Study

SOCKETS = Study(
    name="sockets",
    question="Which socket API in C answers soonest and carries most: Berkeley sockets, ZeroMQ, nanomsg, or NNG?",
    document=(
        "the thesis of Samuel Pereira de Souza, “Análise de Desempenho de APIs de *Sockets*”, Universidade Federal do "
        "Ceará, Quixadá, 2016"
    ),
    parts={
        "sockets": Part(
            title="Socket APIs in C: response time at two rates and two sizes, and throughput",
            sweep=design.sockets,
            pictures=figures.graphs,
            answers=answers.answers,
            claims=claims.claims,
            sections=answers.sections,
            peers=design.PEERS,
            also=("socket_bindings",),
            after=("socket_patterns",),
            runs=lambda scale: (design.received(scale),),
        ),
        "socket_patterns": Part(
            title="Pair beside request-reply, on ZeroMQ and nanomsg",
            sweep=design.patterns,
            answers=answers.patterns,
            peers=("c-zeromq", "c-nanomsg"),
        ),
        "socket_bindings": Part(
            title="ZeroMQ and NNG from Python, beside C and beside sockets",
            sweep=design.bindings,
            answers=answers.bindings,
            peers=("c-zeromq", "c-nng"),
        ),
    },
    scales={
        "smoke": Scale(rounds=2, looks=(2,), clients=(1,)),
        "quick": Scale(rounds=4, looks=(10, 14), clients=(1,)),
        "paper": Scale(rounds=180, looks=(20,), clients=(1,)),
    },
)
