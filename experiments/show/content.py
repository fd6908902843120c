"""Content of a study's part for readers, as plain values: answers, claims, pictures and sections.

A study has parts, and a part has one sweep: a measurement in blocks. ``Shows`` describes the functions with which a
part makes its content. ``read`` judges a folder of results, and calls the functions of the folder's part. Left out: the
layout of the content, and the rules of the judgement (``judge``).
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
"""Verdict on a claim. NOT TESTABLE: no measurement here can decide the claim. NOT MEASURED: the part that would decide
the claim was not measured (``not_measured``)."""

NOWHERE: Mapping[str, Path] = MappingProxyType({})
"""Default of the argument ``beside`` of ``read``: no folders of other parts."""

NO_VALUE = "Not answered: no block has a value that passed the gates."


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to one question of a study, as sentences, comparisons and a figure."""

    question: str
    sentence: str
    """Answer in a sentence, with a number. Empty if gates refused every block of the answer's comparisons."""
    deciding: tuple[Judged, ...]
    """Comparisons whose verdicts decide the answer."""
    further: tuple[Judged, ...] = ()
    """Comparisons in a second table, below the answer."""
    details: tuple[str, ...] = ()
    """Further findings, each in a sentence."""
    estimand: str = ""
    """Quantity that the answer's number estimates."""
    not_concluded: tuple[str, ...] = ()
    """Conclusions that a reader must not draw from the answer."""
    figure: str | None = None
    """Name of the figure that shows the answer. None: a forest plot of the deciding comparisons is made."""
    to_decide: str | None = None
    """Sentence with the command that would decide an undecided answer. None for a decided answer."""
    titles: Mapping[Measure, str] = field(default_factory=dict)
    """Titles of the forest plots, by measure. By default the title of the first plot is the question. The titles of the
    other plots contain the question."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim of the document that a study reproduces, or of the study itself, with the verdict of our data."""

    text: str
    """The claim in our words, with the numbers of the document, if any."""
    verdict: ClaimVerdict
    said: str
    """Sentences with the numbers of our data."""


Finding = tuple[ClaimVerdict, str]
"""Verdict on a claim, and the sentences with our numbers."""

Data = TypeVar("Data")


def decided(confirmed: bool, contradicted: bool) -> ClaimVerdict:
    """Verdict on a claim: CONFIRMED, else CONTRADICTED, else INCONCLUSIVE."""
    return "CONFIRMED" if confirmed else "CONTRADICTED" if contradicted else "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class Entry(Generic[Data]):
    """Claim, with the function that decides the claim from a study's data."""

    text: str
    finding: Callable[[Data], Finding]
    part: str = ""
    """Name of the part whose data decide the claim. Empty if one part decides all claims of the study."""
    place: str = ""
    """Place of the claim in the document, such as a page number. Empty if the study's page does not name the place."""

    def claim(self, data: Data) -> Claim:
        """Claim with the verdict that ``data`` gives."""
        return Claim(self.text, *self.finding(data))


def card(claims: Iterable[Claim]) -> Table:
    """Replication card: a table of the claims with their verdicts."""
    lines = tuple((claim.text, f"**{claim.verdict}**", claim.said) for claim in claims)
    return Table(("What the original says", "Our data", "Our numbers"), lines, 3)


def not_measured(text: str, part: str) -> Claim:
    """Claim with the verdict NOT MEASURED. ``part``: name of the part that would decide the claim."""
    return Claim(text, "NOT MEASURED", f"This measures it: `python -m experiments run {part}`")


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a report: Markdown under a heading, and the names of the section's figures."""

    title: str
    text: str
    figures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Judged measurements of a part, and the circumstances of the measurements."""

    main: Judgement
    """Judgement of the part's sweep."""
    after: Mapping[str, Judgement] = field(default_factory=dict)
    """Judgements of the other sweeps, measured before or after the part's sweep. The key is the other part's name."""
    runs: tuple[object, ...] = ()
    """Judgements of runs that are not sweeps, such as cold starts."""
    environment: Environment | None = None
    """Record of the machine. None if the folder of results has no record."""
    version: Version = UNKNOWN
    """Version of the measured servers, clients and peers, compared with the present sources."""
    foretold: Sequence[Foretold] = ()
    """Predictions for the sweep's arms. The predictions were made before the sweep. An arm is a server under a load."""
    beside: Mapping[str, Judgement] = field(default_factory=dict)
    """Judgements of other recorded parts, by the parts' names. These parts' sweeps decide some claims of this part."""

    def of(self, judged: type[Data]) -> Data | None:
        """Judgement of this type among ``runs``. None if no run of this kind was measured."""
        return next((each for each in self.runs if isinstance(each, judged)), None)


class Shows(Protocol):
    """Functions and names of a study's part, for ``content`` and ``read``. Each function makes content from the
    measurements.

    ``peers``: names of the servers in other languages that the part measures. ``first``: name of the part that is
    measured before this part, if any. ``also`` and ``after``: names of the parts that are measured after this part.
    """

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
    """Content of a study's part for readers."""

    title: str
    seen: Seen
    answers: tuple[Answer, ...] = ()
    claims: tuple[Claim, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sections: tuple[Section, ...] = ()
    left_out: tuple[str, ...] = ()
    """Names of the part's peers (servers in other languages) that were not built. These results lack such a peer."""
    document: str = ""
    """Document that the study reproduces, in Markdown. Empty if the study reproduces no document."""

    @property
    def state(self) -> tuple[str, ...]:
        """Sentences on the progress of the sweep."""
        return tuple(state_sentences(self.seen.main))

    @property
    def reach(self) -> str:
        """Sentence on the ratios of the answers: the largest change that a further run may make. Empty without earlier
        runs."""
        answers = " ".join(answer.sentence for answer in self.answers)
        return reach_of_all(answers, (judged for answer in self.answers for judged in answer.deciding))

    @property
    def judgement(self) -> Judgement:
        """Judgement of the part's sweep."""
        return self.seen.main

    def picture(self, name: str) -> Picture:
        """Picture with this name. Raises UsageError if no picture has this name."""
        named = {each.name: each for each in self.pictures}
        if name not in named:
            raise UsageError("a figure", name, ", ".join(named) or "none: nothing is drawn of these results")
        return named[name]


def read(folder: Path, parts: Mapping[str, Shows], beside: Mapping[str, Path] = NOWHERE) -> Content:
    """Judge a folder of results, and make the content of the folder's part. Raises UsageError for a part not in
    ``parts``.

    The results of sweeps that were measured before or after the part's sweep are in subfolders of ``folder``. A
    subfolder has the name of its sweep's part. ``beside``: the folders of other parts that decide claims of this part.
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
    """Make the content of a part from the measurements.

    An answer without a figure gets a forest plot of its comparisons. If gates refused every block of an answer's
    comparisons, ``NO_VALUE`` replaces the answer's sentence, and the forest plot has no data.
    """
    answers, pictures = [], list(part.pictures(seen))
    for number, answer in enumerate(part.answers(seen), 1):
        figure = answer.figure
        if figure is None and (answer.deciding or not answer.sentence):
            drawn = list(_pictures(f"question_{number}", answer))
            pictures += drawn
            figure = drawn[0].name
        details = (*answer.details, *reach_sentences(answer.deciding))
        answers.append(replace(answer, figure=figure, sentence=answer.sentence or NO_VALUE, details=details))
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
    """Forest plots of an answer: one figure for the comparisons of each measure, such as processor time."""
    of_measure: dict[Measure, list[Judged]] = {} if answer.deciding else {"response": []}
    for each in answer.deciding:
        of_measure.setdefault(each.comparison.measure, []).append(each)
    first, *others = of_measure.items()
    yield ratios.picture(name, answer.titles.get(first[0], answer.question), first[1])
    for measure, own in others:
        title = f"{ratios.QUANTITIES[measure].capitalize()}, to the question: {answer.question}"
        yield ratios.picture(f"{name}_{measure}", answer.titles.get(measure, title), own)


def left_out(peers: Sequence[str], sweep: Sweep) -> Iterator[str]:
    """Names of the part's peers that no arm of the sweep has. Such a peer was not built before the measurement."""
    asked = {tuple(arm.setting[name] for name in ("service", "language", "transport", "build")) for arm in sweep.arms}
    for name in peers:
        peer = PEERS[name]
        if (peer.serves, peer.language, peer.transport, peer.compiled) not in asked:
            yield name


def judged(folder: Path) -> Judgement:
    """Judge the sweep of a folder by the sweep's own limits. Raises UsageError.

    If the folder has a record of the machine, the judgement includes the deviation between earlier runs on a machine of
    the same kind.
    """
    judgement = judge(read_sweep(folder), counting(read_blocks(folder)))
    if not (folder / ENVIRONMENT_FILE).exists():
        return judgement
    machine = load(folder)
    return with_deviation(judgement, [run for run in of_study(judgement.sweep.study) if run.is_before(machine)])
