"""The studies, a folder each. To add one: its folder, and a line in ``STUDIES``."""

from collections.abc import Mapping

from experiments.studies.greeter import GREETER
from experiments.studies.pool_size import POOL_SIZE
from experiments.studies.pools import POOLS
from experiments.studies.server_cost import SERVER_COST
from experiments.studies.sockets import SOCKETS
from experiments.studies.sort import SORT
from experiments.studies.stock import STOCK
from experiments.studies.study import Part, Study

STUDIES: Mapping[str, Study] = {
    each.name: each for each in (STOCK, SERVER_COST, SORT, SOCKETS, GREETER, POOLS, POOL_SIZE)
}
"""Every study by its name."""

PARTS: Mapping[str, tuple[Study, Part]] = {
    name: (study, part) for study in STUDIES.values() for name, part in study.parts.items()
}
"""Every part that can be run, by its name; a study's first part also has the study's name."""
