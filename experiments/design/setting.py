"""Settings: a level for every factor, written as a text such as ``grpc workers=8 clients=5``.

``factors.py`` has the factors. The first word of a text may be only a transport's name. Every other word is
``FACTOR=LEVEL``, quoted as in a shell. Factors without a word are at their defaults. The text of a setting contains the
transport and the factors that are not at their defaults. ``read`` converts this text back into an equal setting.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from experiments.design.factors import EXECUTOR_NAMES, FACTORS
from experiments.design.levels import Level, shown
from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import meant

WORDS = """\
Words:
  factor   a quantity that may vary, such as the transport
  level    a value of a factor, such as grpc
  arm      a server under a load, with a level of every factor
  block    a start of all servers, and then measurements of every arm; an interval is over blocks"""
"""Explanations of terms, one line for each term, for the help of commands."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A level for every factor, in the order of ``FACTORS``. Made by ``setting`` or ``read``."""

    levels: tuple[tuple[str, Level], ...]
    _hash: int = field(init=False, repr=False, compare=False)
    """Hash of the levels. The hash is stored, since a judgement uses a setting's hash some 100,000 times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.levels))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Setting"], tuple[tuple[tuple[str, Level], ...]]]:
        """Arguments for ``pickle``. The hash is not pickled, since equal levels have different hashes in different
        processes."""
        return Setting, (self.levels,)

    def __getitem__(self, factor: str) -> Level:
        """The level of a factor. Raises KeyError for an unknown factor."""
        return dict(self.levels)[factor]

    def whole(self, factor: str) -> int:
        """The level of a factor whose levels are whole numbers, such as ``clients``."""
        level = self[factor]
        assert isinstance(level, int)
        return level

    def text(self, factor: str) -> str:
        """The text of a factor's level, such as ``5`` or ``yes``."""
        return shown(self[factor])

    @property
    def executor(self) -> str:
        """Name of the executor for readers, such as ``static pool``. With ``dispatch=loop``: ``event loop``."""
        level = "event loop" if self["dispatch"] == "loop" else self.text("executor")
        return EXECUTOR_NAMES.get(level, level.replace("-", " "))

    def but(self, **levels: Level) -> "Setting":
        """A copy of the setting with other levels. Defaults that depend on these levels are computed again. Raises
        UsageError for an unknown factor or a level that is not allowed."""
        return setting(**(dict(self.said()) | levels))

    def unlike(self, other: "Setting") -> tuple[str, ...]:
        """Names of the factors whose levels differ between this setting and ``other``."""
        levels = zip(self.levels, other.levels, strict=True)
        return tuple(name for (name, own), (_, level) in levels if own != level)

    @lru_cache(4096)  # noqa: B019  # settings are small, and the cache keeps at most 4096
    def said(self) -> tuple[tuple[str, Level], ...]:
        """Names and levels of the factors in the setting's text: the transport, and every factor that is not at its
        default."""
        chosen = dict(self.levels)
        default = {name: FACTORS[name].default_among(chosen) for name in chosen}
        return tuple((name, level) for name, level in self.levels if name == "transport" or level != default[name])

    @lru_cache(4096)  # noqa: B019  # settings are small, and the cache keeps at most 4096
    def of(self, whose: str) -> tuple[tuple[str, Level], ...]:
        """Names and levels of the factors of one side. ``whose``: ``server`` or ``load``."""
        return tuple((name, level) for name, level in self.levels if FACTORS[name].of == whose)

    def __str__(self) -> str:
        words = (f"{name}={shlex.quote(shown(level))}" for name, level in self.said() if name != "transport")
        return " ".join((shown(self["transport"]), *words))


def setting(**levels: Level) -> Setting:
    """Makes a setting with these levels, and with defaults for all other factors. Raises UsageError for an unknown
    factor or a level that is not allowed."""
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
    """The setting that is written as ``text``, such as ``grpc clients=5``. A factor that the text does not name has its
    level in ``base``. A factor that ``base`` does not name either has its default. Raises UsageError for a text that is
    not a setting."""
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
