"""Thread-pool servers in Rust, Go and Python: the 72 cells, nine conclusions and stress test of a document."""

from experiments.studies.pools.answers import answers
from experiments.studies.pools.claims import EXECUTORS, claims
from experiments.studies.pools.design import DEBUG, PART, PEERS, STUDY, cells, pools, stress
from experiments.studies.pools.figures import pictures, sections
from experiments.studies.study import Part, Scale, Study

POOLS = Study(
    name=STUDY,
    question="Which thread-pool server answers sooner and takes less: Rust, Go or Python?",
    document=(
        "the report of Aleksandar Stojanović, “Poređenje implementacija višenidnog servera u programskim jezicima "
        "*Rust* i *Go*”, University of Novi Sad, 2023. "
        "[Its programs](https://github.com/stojanovic00/rust-go-server-comp) are public"
    ),
    parts={
        PART: Part(
            title="Servers on pools of threads in Rust, Go and Python, over HTTP/1.1",
            sweep=pools,
            answers=answers,
            pictures=pictures,
            claims=claims,
            sections=sections,
            peers=(*PEERS.values(), DEBUG),
            beside=(EXECUTORS,),
            runs=lambda scale: (cells(scale), stress(scale)),
        )
    },
    scales={
        "smoke": Scale(rounds=1, looks=(2,), clients=(1,)),
        "quick": Scale(rounds=6, looks=(10, 14), clients=(1,)),
        "paper": Scale(rounds=10, looks=(12, 16, 20), clients=(1,), whole=True),
    },
)
