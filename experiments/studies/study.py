"""A study: a question, the parts that answer it, and the functions that give its content for readers.

A **part** is one sweep: ``run STUDY`` runs the study's first part, and ``run PART`` any part. A study hands over
functions from judgements to plain values (answers, claims, figures, sections), so that no general module names a study.
To add one: a folder with a ``Study``, and a line in ``STUDIES``.
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

ProfileName = Literal["smoke", "quick", "paper"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of a run of a part."""

    rounds: int
    """Rounds of a block."""
    looks: tuple[int, ...]
    """Numbers of blocks at which the part is judged."""
    clients: tuple[int, ...]
    """Numbers of clients, ascending."""
    block_s: float = 60.0
    """Most seconds of a block's slices."""
    seed: int = 1
    fixed: bool = False
    """True where a number of blocks was asked for, in place of the looks of a profile."""
    whole: bool = False
    """True where a part has all levels or counts of its document. Other scales have fewer."""
    peers: frozenset[str] = frozenset(PEERS)
    """The peers that are built here, by name: a part leaves out arms of others."""
    hosts: bool = False
    """True where other hosts send the load: a part keeps the servers that listen beyond loopback."""
    foretell: Callable[[Setting], Foretold] | None = None
    """Predicts a setting, in a part with predictions. None before the predictions are made; then a part guesses its
    rates."""


@dataclass(frozen=True, slots=True)
class Part:
    """One sweep of a study: its design, and the functions that give its texts and figures."""

    title: str
    sweep: Callable[[Scale], Sweep]
    answers: Callable[[Seen], Sequence[Answer]]
    clients: tuple[int, ...] = ()
    """Numbers of clients unless others are given, ascending; empty: the scale's."""
    pictures: Callable[[Seen], Sequence[Picture]] = lambda _: ()
    """Pictures beside the figures of the answers."""
    claims: Callable[[Seen], Sequence[Claim]] = lambda _: ()
    sections: Callable[[Seen], Sequence[Section]] = lambda _: ()
    peers: tuple[str, ...] = ()
    """Names of the peers that it measures where they are built."""
    first: str | None = None
    """Name of a part without verdicts that is measured before it, into a folder inside its own …"""
    foretell: Callable[[Judgement, Setting], Foretold] | None = None
    """… and the function that predicts each of its arms from that part. The predictions are written down before its own
    sweep begins."""
    also: tuple[str, ...] = ()
    """Parts that are measured after it, as fully as if asked for alone, into folders inside its own."""
    after: tuple[str, ...] = ()
    """Parts without verdicts that are measured after it, in blocks of their own, into folders inside its own."""
    beside: tuple[str, ...] = ()
    """Names of parts, of any study, whose recordings beside it decide some of its claims."""
    runs: Callable[[Scale], Sequence[Plan]] = lambda _: ()
    """Runs of other kinds that are made after it, into its own folder."""


@dataclass(frozen=True, slots=True)
class Study:
    """A question and its parts; the first is the main one."""

    name: str
    question: str
    parts: Mapping[str, Part]
    scales: Mapping[ProfileName, Scale]
    document: str = ""
    """Document that it reproduces: kind, title and origin, in Markdown, to stand behind "It reproduces"; empty for
    none."""
