"""The studies. Each study has a folder, a ``Study`` with the folder's name in capitals, and a line in ``STUDIES``.

A study is imported at its first use: a study has about nine modules, and most commands need only one study.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module

from experiments.studies.by_clients import SUFFIX, by_clients
from experiments.studies.study import Part, Study


class _Studies(Mapping[str, Study]):
    """Mapping from the name of each study to the study."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Study:
        if name not in self._names:
            raise KeyError(name)
        study: Study = getattr(import_module(f"{__name__}.{name}"), name.upper())
        return study

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Parts(Mapping[str, tuple[Study, Part]]):
    """Parts of all studies, by name. The first part of a study has the study's name.

    A part's name with ``SUFFIX`` at its end is the name of another part, which ``by_clients`` makes. The other part
    measures the same servers under the numbers of clients that the user gives. Iteration leaves out the names with
    ``SUFFIX``.
    """

    def __getitem__(self, name: str) -> tuple[Study, Part]:
        for study in (STUDIES[each] for each in sorted(STUDIES, key=lambda each: each != name)):
            if name in study.parts:
                return study, study.parts[name]
        if not name.endswith(SUFFIX):
            raise KeyError(name)
        study, part = self[name.removesuffix(SUFFIX)]
        return study, by_clients(name.removesuffix(SUFFIX), part)

    def __iter__(self) -> Iterator[str]:
        return (name for study in STUDIES.values() for name in study.parts)

    def __len__(self) -> int:
        return sum(len(study.parts) for study in STUDIES.values())


STUDIES: Mapping[str, Study] = _Studies(
    "stock",
    "server_cost",
    "sort",
    "sockets",
    "greeter",
    "pools",
    "pool_size",
    "python_grpc_servers",
)
"""Every study by its name."""

PARTS: Mapping[str, tuple[Study, Part]] = _Parts()
"""Every part that can be run, by its name."""
