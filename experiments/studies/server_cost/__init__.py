"""Processor time that a request costs a server, and processor time and memory that an idle server takes.

``sweeps`` has the sweeps of the main part and of three further parts, and ``answers`` and ``split`` have the answers,
figures and tables of these parts. Each of the modules ``who_runs``, ``real_clients``, ``overload_curve`` and
``durable`` is a whole part.
"""

from experiments.studies.server_cost import answers, durable, overload_curve, real_clients, split, sweeps, who_runs
from experiments.studies.study import Part, Scale, Study

SERVER_COST = Study(
    name="server_cost",
    question="What does a request cost the server in processor time: gRPC against sockets, and against a bare echo?",
    parts={
        "server_cost": Part(
            title="Processor time a request at 16 kept connections, and servers by themselves",
            sweep=sweeps.server_cost,
            pictures=answers.pictures,
            answers=answers.answers,
            sections=answers.sections,
            runs=lambda scale: (sweeps.alone(scale),),
        ),
        "split": Part(
            title="Where a request's processor time goes, on three servers of one executor",
            sweep=sweeps.split,
            pictures=split.pictures,
            answers=split.answers,
            sections=split.sections,
        ),
        "languages": Part(
            title="Processor time of a Lookup in Python, Go and Rust",
            sweep=sweeps.languages,
            pictures=answers.of_languages,
            answers=answers.languages,
            sections=answers.arms,
            peers=("go-stock", "rust-stock"),
        ),
        who_runs.PART: Part(
            title="Who runs a Lookup on sockets: each executor beside a server in C",
            sweep=who_runs.sweep,
            pictures=who_runs.pictures,
            answers=who_runs.answers,
            sections=who_runs.sections,
            peers=(who_runs.PEER,),
        ),
        real_clients.PART: Part(
            title="Clients on grpc-go whose header blocks differ: grpc_static beside other gRPC servers",
            sweep=real_clients.sweep,
            pictures=real_clients.pictures,
            answers=real_clients.answers,
            sections=real_clients.sections,
            peers=real_clients.PEERS,
        ),
        overload_curve.PART: Part(
            title="Overload: what is answered in time, from half of a server's capacity to ten times",
            sweep=overload_curve.sweep,
            pictures=overload_curve.pictures,
            answers=overload_curve.answers,
            sections=overload_curve.sections,
        ),
        durable.PART: Part(
            title="Durable trades on sockets: beside the same server in memory, and beside a bare fdatasync",
            sweep=durable.sweep,
            pictures=durable.pictures,
            answers=durable.answers,
            sections=durable.sections,
        ),
        "options": Part(
            title="What TLS, a token, metrics and a store on disk cost a Lookup on sockets",
            sweep=sweeps.options,
            pictures=answers.of_options,
            answers=answers.options,
            sections=answers.with_goals,
        ),
    },
    scales={
        "smoke": Scale(rounds=2, looks=(2,), clients=(1,)),
        "quick": Scale(rounds=15, looks=(10, 14), clients=(1,)),
        "paper": Scale(rounds=15, looks=(10, 14, 20), clients=(1,)),
    },
)
