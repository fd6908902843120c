"""Comparison of Go's net/rpc with gRPC, for merge sort and quicksort as remote procedures.

The document's factor N was the number of calls. The document's conclusion reads N as the size of the input. Both
readings are measured. ``design`` has the document's numbers and the sweeps; ``answers`` finds measurements by name, and
has the answers; ``claims`` has the replication card; ``figures`` has figures and tables.
"""

from functools import partial

from experiments.studies.sort import answers, claims, design, figures
from experiments.studies.study import Part, Scale, Study

SORT = Study(
    name="sort",
    question="Sorting as a remote procedure in Go: net/rpc or gRPC, and what was the document's N?",
    document="slides of a student's experiment, “Análise de Desempenho: MergeSort e QuickSort – gRPC e Go RPC”",
    parts={
        "sort": Part(
            title="Merge sort and quicksort on Go's net/rpc and on gRPC",
            sweep=design.sort,
            pictures=figures.pictures,
            answers=answers.answers,
            claims=claims.claims,
            sections=figures.sections,
            peers=design.PEERS,
            also=("sort_array_len", "sort_python"),
            after=("sort_python_array_len",),
            runs=design.cold,
        ),
        "sort_array_len": Part(
            title="Arrays of 100, 1,000 and 10,000 numbers, on Go's net/rpc and on gRPC",
            sweep=design.array_len,
            pictures=figures.array_len,
            answers=answers.array_len,
            claims=claims.claims,
            peers=design.PEERS,
        ),
        "sort_python": Part(
            title="Merge sort and quicksort on Python's gRPC and sockets",
            sweep=partial(design.python_sort, "sort_python"),
            pictures=figures.python_sort,
            answers=answers.python,
        ),
        "sort_python_array_len": Part(
            title="Arrays of 100, 1,000 and 10,000 numbers, on Python's transports",
            sweep=partial(design.python_array_len, "sort_python_array_len"),
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
