"""Content that a part of a study has for readers: answers, claims, pictures, sections. Plain values.

``Shows`` has the functions that a part gives. ``read`` judges a folder of results and calls the functions of its part.
Left out: the look of the content, and its truth, which ``judge`` decides.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Literal, Protocol, TypeVar

from experiments.design.arms import Measure
from experiments.design.sweep import Sweep
from experiments.judge.agreement import with_deviation
from experiments.judge.verdicts import Judged, Judgement, judge
from experiments.kinds import kept, prediction
from experiments.kinds.prediction import Foretold
from experiments.peers import PEERS
from experiments.results.earlier import of_study
from experiments.results.environment import ENVIRONMENT_FILE, Environment, load
from experiments.results.files import SWEEP_FILE, counting, read_blocks, read_sweep
from experiments.show import version
from experiments.show.figures import ratios
from experiments.show.figures.style import Picture
from experiments.show.sentences import reach_of_all, reach_sentences, state_sentences
from experiments.show.tables import Table
from experiments.show.version import UNKNOWN, Version
from stock_service.rpc.errors import UsageError

ClaimVerdict = Literal["CONFIRMED", "CONTRADICTED", "INCONCLUSIVE", "NOT TESTABLE", "NOT MEASURED"]
"""Verdict on a claim. NOT TESTABLE: no measurement here decides it. NOT MEASURED: another part would
(``not_measured``)."""


NOWHERE: Mapping[str, Path] = MappingProxyType({})

NO_VALUE = "Not answered: no block has a value that the gates let count."


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, answered for a reader who reads once."""

    question: str
    sentence: str
    """The answer, with its number."""
    deciding: tuple[Judged, ...]
    """Comparisons that decide the answer."""
    further: tuple[Judged, ...] = ()
    details: tuple[str, ...] = ()
    """Further findings, a sentence each."""
    estimand: str = ""
    """Quantity that the number estimates."""
    not_concluded: tuple[str, ...] = ()
    """Conclusions that do not follow from the answer."""
    figure: str | None = None
    """Name of the figure that shows the answer; None: the forest of its deciding comparisons is drawn."""
    to_decide: str | None = None
    """Sentence with the command that would decide an undecided answer; None for a decided answer."""
    titles: Mapping[Measure, str] = field(default_factory=dict)
    """Titles of its forests by measure, where the question is no title of the forest."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the document that a study reproduces, with the verdict of our data."""

    text: str
    """Statement of the original, in our words, with its numbers."""
    verdict: ClaimVerdict
    said: str
    """Our numbers, in a sentence."""


Finding = tuple[ClaimVerdict, str]
"""Verdict on a claim, and our numbers in a sentence."""

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Data]):
    """A claim, and the functions that decide it from a study's data."""

    text: str
    finding: Callable[[Data], Finding]
    part: str = ""
    """Part whose data decide it, in a study whose claims are of several parts."""
    place: str = ""
    """Place in the document, where the study's page tells it."""

    def claim(self, data: Data) -> Claim:
        """The claim with the verdict of the data."""
        return Claim(self.text, *self.finding(data))


def card(claims: Iterable[Claim]) -> Table:
    """The replication card."""
    lines = tuple((claim.text, f"**{claim.verdict}**", claim.said) for claim in claims)
    return Table(("What the original says", "Our data", "Our numbers"), lines, 3)


def not_measured(text: str, part: str) -> Claim:
    """A claim that another part decides, which was not measured with this one."""
    return Claim(text, "NOT MEASURED", f"This measures it: `python -m experiments run {part}`")


@dataclass(frozen=True, slots=True)
class Section:
    """A further part of a report: Markdown under a heading, and the names of the figures that it has."""

    title: str
    text: str
    figures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Measurements for a part: its own sweep, and those that ran before and after it, by their parts' names."""

    main: Judgement
    after: Mapping[str, Judgement] = field(default_factory=dict)
    runs: tuple[object, ...] = ()
    """Runs of other kinds beside the sweep, each judged by its kind."""
    environment: Environment | None = None
    """None where no record of the machine stands beside the results."""
    version: Version = UNKNOWN
    """Version of its servers, clients and peers, beside those that are here."""
    foretold: Sequence[Foretold] = ()
    """Predictions for the sweep's arms, made before it."""
    beside: Mapping[str, Judgement] = field(default_factory=dict)
    """Other parts that were recorded beside this one, by their names."""

    def of(self, judged: type[Data]) -> Data | None:
        """The run beside the sweep whose judgement is of this type; None where it was not measured."""
        return next((each for each in self.runs if isinstance(each, judged)), None)


class Shows(Protocol):
    """Content of a part of a study. All but its title and its names of parts is a function of the measurements."""

    @property
    def title(self) -> str: ...

    @property
    def peers(self) -> tuple[str, ...]: ...

    @property
    def first(self) -> str | None: ...

    @property
    def also(self) -> tuple[str, ...]: ...

    @property
    def after(self) -> tuple[str, ...]: ...

    @property
    def pictures(self) -> Callable[[Seen], Sequence[Picture]]: ...

    @property
    def answers(self) -> Callable[[Seen], Sequence[Answer]]: ...

    @property
    def claims(self) -> Callable[[Seen], Sequence[Claim]]: ...

    @property
    def sections(self) -> Callable[[Seen], Sequence[Section]]: ...


@dataclass(frozen=True, slots=True)
class Content:
    """Content of one sweep for readers."""

    title: str
    seen: Seen
    answers: tuple[Answer, ...] = ()
    claims: tuple[Claim, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sections: tuple[Section, ...] = ()
    left_out: tuple[str, ...] = ()
    """Names of the peers that the part measures where they are built, and that are not in these results."""
    document: str = ""
    """Document that its study reproduces, in Markdown; empty for none."""

    @property
    def state(self) -> tuple[str, ...]:
        """Sentences on the progress of the sweep."""
        return tuple(state_sentences(self.seen.main))

    @property
    def reach(self) -> str:
        """Sentence on how far a further run may move the ratios that the answers show; empty where no earlier runs are
        known."""
        answers = " ".join(answer.sentence for answer in self.answers)
        return reach_of_all(answers, (judged for answer in self.answers for judged in answer.deciding))

    @property
    def judgement(self) -> Judgement:
        """Judgement of the part's own sweep."""
        return self.seen.main

    def picture(self, name: str) -> Picture:
        """The picture of this name. UsageError where there is none."""
        named = {each.name: each for each in self.pictures}
        if name not in named:
            raise UsageError("a figure", name, ", ".join(named) or "none: nothing is drawn of these results")
        return named[name]


def read(folder: Path, parts: Mapping[str, Shows], beside: Mapping[str, Path] = NOWHERE) -> Content:
    """A folder of results, judged, with the content of its part. UsageError for a folder of another study.

    Sweeps that ran after it lie in folders inside, named after their parts. ``beside``: the folders of other parts that
    decide its claims.
    """
    main = judged(folder)
    if main.sweep.part not in parts:
        given = f"results of {main.sweep.part}, which is no part of a study here"
        raise UsageError(str(folder), given, "those of a study that `list` names; `verify` reads any")
    part = parts[main.sweep.part]
    inside = (*part.also, *part.after, *([part.first] if part.first else []))
    after = {name: judged(folder / name) for name in inside if (folder / name / SWEEP_FILE).exists()}
    environment = load(folder) if (folder / ENVIRONMENT_FILE).exists() else None
    seen = Seen(
        main,
        after,
        runs=tuple(
            import_module(f"experiments.judge.{name}").judged(*run, main.sweep.limits)
            for name, run in kept(folder).items()
        ),
        environment=environment,
        version=version.of(environment, [arm.setting for each in (main, *after.values()) for arm in each.sweep.arms]),
        foretold=prediction.load(folder)[1] if (folder / prediction.FORETOLD_FILE).exists() else (),
        beside={name: judged(each) for name, each in beside.items()},
    )
    return content(part, seen)


def content(part: Shows, seen: Seen) -> Content:
    """Content of a part for its measurements. An answer without a figure gets that of its comparisons.

    Where every block was refused there is no figure to name. A figure without data says so, and an empty sentence too.
    """
    answers, pictures = [], list(part.pictures(seen))
    for number, answer in enumerate(part.answers(seen), 1):
        empty = not answer.sentence
        if answer.figure is None and (answer.deciding or empty):
            drawn = list(_pictures(f"question_{number}", answer))
            pictures += drawn
            answer = replace(answer, figure=drawn[0].name, sentence=NO_VALUE if empty else answer.sentence)
        answers.append(replace(answer, details=(*answer.details, *reach_sentences(answer.deciding))))
    return Content(
        title=part.title,
        seen=seen,
        answers=tuple(answers),
        claims=tuple(part.claims(seen)),
        pictures=tuple(pictures),
        sections=tuple(part.sections(seen)),
        left_out=tuple(left_out(part.peers, seen.main.sweep)),
    )


def _pictures(name: str, answer: Answer) -> Iterator[Picture]:
    """Forests of an answer: one figure for the comparisons of each measure."""
    of_measure: dict[Measure, list[Judged]] = {} if answer.deciding else {"response": []}
    for each in answer.deciding:
        of_measure.setdefault(each.comparison.measure, []).append(each)
    first, *others = of_measure.items()
    yield ratios.picture(name, answer.titles.get(first[0], answer.question), first[1])
    for measure, own in others:
        title = f"{ratios.QUANTITIES[measure].capitalize()}, to the question: {answer.question}"
        yield ratios.picture(f"{name}_{measure}", answer.titles.get(measure, title), own)


def left_out(peers: Sequence[str], sweep: Sweep) -> Iterator[str]:
    """Peers of a part that no arm of its sweep has."""
    asked = {tuple(arm.setting[name] for name in ("service", "language", "transport", "build")) for arm in sweep.arms}
    for name in peers:
        peer = PEERS[name]
        if (peer.serves, peer.language, peer.transport, peer.compiled) not in asked:
            yield name


def judged(folder: Path) -> Judgement:
    """Sweep of a folder, judged by its own limits, with the deviation between earlier runs on such a machine. Raises
    UsageError."""
    judgement = judge(read_sweep(folder), counting(read_blocks(folder)))
    if not (folder / ENVIRONMENT_FILE).exists():
        return judgement
    machine = load(folder)
    return with_deviation(judgement, [run for run in of_study(judgement.sweep.study) if run.is_before(machine)])
