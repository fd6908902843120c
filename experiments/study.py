"""Studies: a question, the parts that answer it, and how much of each profile is run.

A part is a figure or an extension: settings to be compared. A study's main parts are what ``run STUDY`` runs, all of
them in the same blocks; the others are run by their own name. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.design import Design, Setting
from experiments.results import Row


@dataclass(frozen=True, slots=True)
class Profile:
    """How much is run: blocks, and seconds of one run."""

    blocks: int
    warm_up_s: float
    duration_s: float
    idle_s: float = 60.0
    """Seconds that an idle server is watched."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What a part makes its settings from: the numbers of clients to run, and the profile."""

    clients: tuple[int, ...]
    profile: Profile

    def setting(self, part: str) -> Setting:
        """A setting of that part, with the profile's phases and every factor at its default."""
        return Setting(part, self.profile.warm_up_s, self.profile.duration_s)


@dataclass(frozen=True, slots=True)
class Part:
    """A figure or an extension. ``once``: its settings stand alone and are run in the first block only.

    ``varies_clients``: its numbers of clients are those that are asked for, or made from them; else it has its own.
    """

    title: str
    settings: Callable[[Scale], tuple[Setting, ...]]
    once: bool = False
    varies_clients: bool = True


@dataclass(frozen=True, slots=True)
class Study:
    """A question and what answers it. ``conclude`` puts the answer in a few lines for the terminal."""

    name: str
    question: str
    parts: Mapping[str, Part]
    main: tuple[str, ...]
    profiles: Mapping[str, Profile]
    beside: tuple[str, ...] = ()
    """Parts that are run with any part but the main ones, in the same blocks: what the gates need."""
    conclude: Callable[[Sequence[Row]], str] | None = None

    def design(self, parts: Sequence[str], scale: Scale, seed: int) -> Design:
        """The design of these parts, and of those that are to be run beside them."""
        if not set(parts) & set(self.main):
            parts = tuple(dict.fromkeys((*parts, *self.beside)))
        compared = [setting for part in parts if not self.parts[part].once for setting in self._settings(part, scale)]
        once = [setting for part in parts if self.parts[part].once for setting in self._settings(part, scale)]
        return Design(tuple(compared), scale.profile.blocks, seed, tuple(once))

    def _settings(self, part: str, scale: Scale) -> tuple[Setting, ...]:
        return self.parts[part].settings(scale)
