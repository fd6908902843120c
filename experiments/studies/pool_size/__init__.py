"""Number and kind of workers that a server needs: predicted from measurements of one worker, then measured.

``design`` has the sweeps. ``prediction`` predicts from the demands of a request. ``beside`` compares predictions with
measurements. ``answers`` has the answers, ``claims`` the card of claims, and ``figures`` has figures and tables.
"""

from experiments.peers import WITHOUT_GIL
from experiments.studies.pool_size import answers, claims, design, figures, prediction
from experiments.studies.study import Part, Scale, Study

POOL_SIZE = Study(
    name="pool_size",
    question="How many workers does a server want, and which kind: threads, an event loop, processes?",
    parts={
        "pool_size": Part(
            title="Work in a request × pool × clients: predicted, then measured",
            sweep=design.pool_size,
            answers=answers.answers,
            pictures=figures.pictures,
            claims=claims.claims,
            sections=figures.sections,
            peers=(WITHOUT_GIL,),
            first="pool_one",
            foretell=prediction.foretell,
            also=("pool_lookups",),
        ),
        "pool_one": Part(
            title="What one client finds of one worker",
            sweep=design.pool_one,
            answers=answers.one,
            peers=(WITHOUT_GIL,),
        ),
        "pool_lookups": Part(
            title="A pure Lookup with 1, 8 and 64 threads",
            sweep=design.pool_lookups,
            answers=answers.lookups,
        ),
    },
    scales={
        "smoke": Scale(rounds=design.SMOKE_ROUNDS, looks=(2,), clients=(16,), block_s=3.0),
        "quick": Scale(rounds=15, looks=(10,), clients=(16,), block_s=3.0),
        "paper": Scale(rounds=15, looks=(12,), clients=(16,), block_s=30.0, whole=True),
    },
)
