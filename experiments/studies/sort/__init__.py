"""Go's net/rpc against gRPC, for merge sort and quicksort as remote procedures.

Its factor N was the number of calls, and its conclusion reads it as the size of the input: both readings are measured.
What is measured stands in ``sweeps``, the document's numbers in ``original``; what is said of it in ``answers``,
``claims`` and ``sections``; how it is drawn in ``figures``.
"""

from experiments.studies.sort import answers, claims, figures, sections, sweeps
from experiments.studies.study import Part, Scale, Study

SORT = Study(
    name="sort",
    question="Sorting as a remote procedure in Go: net/rpc or gRPC, and what was the document's N?",
    document="slides of a student's experiment, “Análise de Desempenho: MergeSort e QuickSort – gRPC e Go RPC”",
    parts={
        "sort": Part(
            title="Merge sort and quicksort on Go's net/rpc and on gRPC",
            sweep=sweeps.sort,
            pictures=figures.main,
            answers=answers.answers,
            claims=claims.claims,
            sections=sections.main,
            peers=sweeps.PEERS,
            also=("sort_array_len", "sort_python"),
            after=("sort_python_array_len",),
            runs=sweeps.cold,
        ),
        "sort_array_len": Part(
            title="Arrays of 100, 1,000 and 10,000 numbers, on Go's net/rpc and on gRPC",
            sweep=sweeps.array_len,
            pictures=figures.array_len,
            answers=answers.array_len,
            claims=claims.claims,
            peers=sweeps.PEERS,
        ),
        "sort_python": Part(
            title="Merge sort and quicksort on Python's gRPC and sockets",
            sweep=sweeps.python_sort,
            pictures=figures.python_sort,
            answers=answers.python,
        ),
        "sort_python_array_len": Part(
            title="Arrays of 100, 1,000 and 10,000 numbers, on Python's transports",
            sweep=sweeps.python_array_len,
            pictures=figures.python_array_len,
            answers=lambda _: (),
        ),
    },
    scales={
        "smoke": Scale(rounds=3, looks=(2,), clients=(1,), block_s=3.0),
        "quick": Scale(rounds=15, looks=(10, 14), clients=(1,), block_s=6.0),
        "paper": Scale(rounds=30, looks=(12, 16, 20), clients=(1,), block_s=30.0),
    },
)
