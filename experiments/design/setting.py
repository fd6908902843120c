"""Settings: a level of every factor. Written as words, such as ``grpc workers=8 clients=5``, quoted as in a shell.

The transport may stand alone as the first word; every other word is ``FACTOR=LEVEL``. Other factors are at their
defaults. A setting's text has the transport and the factors that are not at their defaults. It reads back as the same
setting.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from experiments.design.factors import EXECUTOR_NAMES, FACTORS
from experiments.design.levels import Level, shown
from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import meant


@dataclass(frozen=True, slots=True)
class Setting:
    """A level of every factor, in the table's order. Made by ``setting`` or ``read``."""

    levels: tuple[tuple[str, Level], ...]
    _hash: int = field(init=False, repr=False, compare=False)
    """Hash of the levels, kept since a judgement asks for it some 100,000 times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.levels))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Setting"], tuple[tuple[tuple[str, Level], ...]]]:
        """Parts for a copy, which may be in another process. Hashes differ there."""
        return Setting, (self.levels,)

    def __getitem__(self, factor: str) -> Level:
        """The level of a factor. Raises KeyError."""
        return dict(self.levels)[factor]

    def whole(self, factor: str) -> int:
        """The level of a factor whose levels are whole numbers."""
        level = self[factor]
        assert isinstance(level, int)
        return level

    def text(self, factor: str) -> str:
        """The level of a factor, as text."""
        return shown(self[factor])

    @property
    def executor(self) -> str:
        """Executor under its name for people, as set or recorded: ``static pool``. Every text takes the name from
        here."""
        level = "event loop" if self["dispatch"] == "loop" else self.text("executor")
        return EXECUTOR_NAMES.get(level, level.replace("-", " "))

    def but(self, **levels: Level) -> "Setting":
        """The same setting at other levels. Defaults that follow from these levels are computed anew. Raises
        UsageError."""
        return setting(**(dict(self.said()) | levels))

    @lru_cache(4096)  # noqa: B019  # a setting is small, and asked for often
    def said(self) -> tuple[tuple[str, Level], ...]:
        """The transport, and every factor that is not at its default."""
        chosen = dict(self.levels)
        default = {name: FACTORS[name].default_among(chosen) for name in chosen}
        return tuple((name, level) for name, level in self.levels if name == "transport" or level != default[name])

    @lru_cache(4096)  # noqa: B019  # a setting is small, and asked for often
    def of(self, whose: str) -> tuple[tuple[str, Level], ...]:
        """The levels of the server's factors, or of the load's."""
        return tuple((name, level) for name, level in self.levels if FACTORS[name].of == whose)

    def __str__(self) -> str:
        words = (f"{name}={shlex.quote(shown(level))}" for name, level in self.said() if name != "transport")
        return " ".join((shown(self["transport"]), *words))


def setting(**levels: Level) -> Setting:
    """A setting with these levels, the others at their defaults. Raises UsageError."""
    return _setting(tuple(levels.items()))


@lru_cache(4096)
def _setting(said: tuple[tuple[str, Level], ...]) -> Setting:
    levels = dict(said)
    unknown = levels.keys() - FACTORS.keys()
    if unknown:
        raise UsageError("a setting", ", ".join(sorted(unknown)), f"these factors: {', '.join(FACTORS)}")
    chosen: dict[str, Level] = {}
    for name, factor in FACTORS.items():
        default = factor.default_among(chosen)
        given = levels.get(name, default)
        chosen[name] = default if given == default else factor.read(shown(given))
    return Setting(tuple(chosen.items()))


def read(text: str, base: Mapping[str, Level] | None = None) -> Setting:
    """The setting that words stand for. Factors without a word are as in ``base``. Raises UsageError."""
    levels: dict[str, Level] = dict(base or {})
    said: set[str] = set()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError("a setting", text, f"words quoted as in a shell: {error}") from error
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not equals and place == 0:
            name, value = "transport", word
        if name in said:
            raise UsageError("a setting", text, f"{name} once")
        said.add(name)
        if name not in FACTORS:
            allowed = f"a transport, then FACTOR=LEVEL{meant(name, FACTORS)}; a factor is one of {', '.join(FACTORS)}"
            raise UsageError("a setting", word, allowed)
        levels[name] = FACTORS[name].read(value)
    return setting(**levels)
