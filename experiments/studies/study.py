"""A study: a question, the parts that answer the question, and the functions that give its texts and figures.

A **part** is one sweep: ``run STUDY`` runs the study's first part, and ``run PART`` any part. A study's functions turn
judgements into plain values (answers, claims, figures, sections), so that no general module names a study. To add a
study: write a folder with a ``Study``, and add a line to ``STUDIES``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.design.setting import Setting
from experiments.design.sweep import Sweep
from experiments.judge.verdicts import Judgement
from experiments.kinds import Plan
from experiments.kinds.prediction import Foretold
from experiments.peers import PEERS
from experiments.show.content import Answer, Claim, Section, Seen
from experiments.show.figures.style import Picture
from stock_service.rpc.errors import UsageError

ProfileName = Literal["smoke", "quick", "paper"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of a run of a part."""

    rounds: int
    """Number of rounds in a block."""
    looks: tuple[int, ...]
    """Numbers of blocks after which the part is judged, ascending. Each such judgement is a look."""
    clients: tuple[int, ...]
    """Numbers of clients, ascending."""
    block_s: float = 60.0
    """Maximum total duration of the slices in a block, in seconds."""
    seed: int = 1
    """Seed of all drawn numbers, such as the order of slices."""
    fixed: bool = False
    """True where the user gave a number of blocks, which replaces the looks of the profile."""
    whole: bool = False
    """True where the sweep has all levels and numbers of clients that the study's document has."""
    peers: frozenset[str] = frozenset(PEERS)
    """Names of the peers (programs in other languages) that are built here. A part leaves out the arms of all peers
    that are not built."""
    hosts: bool = False
    """True where other hosts send the load. A part then keeps only the servers that listen beyond the loopback."""
    foretell: Callable[[Setting], Foretold] | None = None
    """Function that predicts the results of a setting, for a part with predictions. None before the predictions are
    made: the open loops of the part then have nominal rates."""


@dataclass(frozen=True, slots=True)
class Part:
    """One sweep of a study: the sweep's design, and the functions that give its texts and figures."""

    title: str
    sweep: Callable[[Scale], Sweep]
    """Function that gives the part's sweep at a scale. Raises ValueError for a scale at which the part has no server or
    decides nothing."""
    answers: Callable[[Seen], Sequence[Answer]]
    """Function that gives the answers to the part's questions."""
    clients: tuple[int, ...] = ()
    """Numbers of clients, ascending. The user may give other numbers. Where the tuple is empty, the part has the
    numbers of its scale.
    """
    pictures: Callable[[Seen], Sequence[Picture]] = lambda _: ()
    """Function that gives the part's figures. ``Answer.figure`` is the name of one of these figures."""
    claims: Callable[[Seen], Sequence[Claim]] = lambda _: ()
    """Function that gives the claims of the study, each with its verdict by the part's data."""
    sections: Callable[[Seen], Sequence[Section]] = lambda _: ()
    """Function that gives sections that only this part's report has."""
    peers: tuple[str, ...] = ()
    """Names of the peers that the part measures. A peer that is not built is left out."""
    first: str | None = None
    """Name of a part without verdicts that is measured before this part, into a folder inside this part's folder."""
    foretell: Callable[[Judgement, Setting], Foretold] | None = None
    """Function that predicts each arm of this part from the results of ``first``. The predictions are written down
    before this part's sweep begins."""
    also: tuple[str, ...] = ()
    """Names of parts with verdicts that are measured after this part, into folders inside this part's folder."""
    after: tuple[str, ...] = ()
    """Names of parts without verdicts that are measured after this part, into folders inside this part's folder. Each
    of these parts has blocks of its own."""
    beside: tuple[str, ...] = ()
    """Names of parts, of any study, whose recordings decide some claims of this part."""
    runs: Callable[[Scale], Sequence[Plan]] = lambda _: ()
    """Function that gives the plans of runs of other kinds, such as cold starts. The runs are measured after the sweep,
    into the part's own folder."""


@dataclass(frozen=True, slots=True)
class Study:
    """A question, and the parts that answer the question. The first part is the main part."""

    name: str
    question: str
    parts: Mapping[str, Part]
    """Parts by name."""
    scales: Mapping[ProfileName, Scale]
    """Size of a run, by profile."""
    document: str = ""
    """Document that the study reproduces: kind, title and origin, in Markdown, to follow the words "It reproduces".
    Empty for a study without a document."""

    def scale(self, profile: ProfileName) -> Scale:
        """Size of a run in a profile. Raises UsageError for a profile that the study lacks."""
        if profile not in self.scales:
            raise UsageError("--profile", profile, f"{' or '.join(self.scales)} for the study {self.name}")
        return self.scales[profile]
