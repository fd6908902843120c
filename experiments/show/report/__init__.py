"""Report of a sweep: ``report.html``, one file that works offline, and ``report.md`` with the same content.

Questions come first, each with a sentence, a figure and a table. The meanings of the numbers are folded away below each
question. Then come the replication card (the study's claims, with verdicts), further sections and comparisons, the
refusals by gates, and the lost slices. The points of all arms, the machine and the method are at the end.
``page.html.j2`` and ``report.md.j2`` are the two templates, and ``page.css`` is the style of the HTML page. All texts
are Markdown. This module measures and concludes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments.design.sweep import Slices, Sweep
from experiments.judge.verdicts import Judged, Judgement
from experiments.peers import PEER_CLIENT
from experiments.results.files import write_at_once
from experiments.show import gallery, tables, version
from experiments.show.content import Content, Section, card
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, percent
from experiments.show.report.rendering import html_of, markdown_of
from experiments.show.sentences import MEANINGS

FAMILIES = {"same": tables.TWINS_HEADING}
"""Headings of families of comparisons, by the family's name. Any other family has its name as its heading."""

MARKDOWN, HTML = "report.md", "report.html"


def write(folder: Path, content: Content) -> tuple[Path, Path]:
    """Draw the figures, write both files into the folder, and return the files' paths. Takes seconds. Raises OSError.

    The Markdown file is written last. So a folder with this file is complete.
    """
    drawn = gallery.draw(folder / gallery.FOLDER, content.pictures)
    report, page = folder / MARKDOWN, folder / HTML
    write_at_once(page, html(content, drawn).encode())
    write_at_once(report, markdown(content).encode())
    return report, page


def markdown(content: Content) -> str:
    """Report in Markdown, with paths to the figures."""
    line = version.line(content.seen.version)
    return markdown_of("report.md.j2", **_given(content), version=line, folder=gallery.FOLDER)


def html(content: Content, drawn: Mapping[str, str]) -> str:
    """Page in HTML, with the figures inside. ``drawn``: the SVG of each figure, by the figure's name."""
    return html_of("page.html.j2", drawn, **_given(content), version=content.seen.version.sentence)


def _given(content: Content) -> dict[str, object]:
    """Values for the two templates, by the names that the templates use."""
    judgement = content.judgement
    return {
        "title": content.title,
        "document": content.document,
        "state": content.state,
        "left_out": content.left_out,
        "unfinished": judgement.look is None,
        "questions": tuple(_questions(content)),
        "card_heading": "What the original claims" if content.document else "What the study claims beforehand",
        "card": _unless_empty(card(content.claims)),
        "sections": tuple(_sections(content)),
        "others": tuple(_others(content)),
        "points": tuple(_points(content)),
        "refused": _unless_empty(tables.refusals(judgement)),
        "lost": _unless_empty(tables.left_out(judgement)),
        "rounds": tables.rounds_sentence(judgement),
        "machine": tables.machine(content.seen.environment).markdown if content.seen.environment else "",
        "reading": tuple(reading(judgement)),
        "method": tuple(method(judgement)),
    }


def _questions(content: Content) -> Iterator[dict[str, object]]:
    """Values for each question: the answer, the figure, the tables, and the meanings of the verdicts in the tables."""
    for answer in content.answers:
        all_ = (*answer.deciding, *answer.further)
        verdicts = dict.fromkeys(ruling.verdict for judged in all_ for ruling in judged.rulings)
        yield {
            "answer": answer,
            "picture": content.picture(answer.figure) if answer.figure else None,
            "deciding": _compared(content.judgement, answer.deciding),
            "further": _compared(content.judgement, answer.further),
            "words": tuple(f"**{verdict.value}**: {MEANINGS[verdict]}" for verdict in verdicts),
        }


def _sections(content: Content) -> Iterator[tuple[Section, tuple[Picture, ...]]]:
    """Sections of the part with their figures. A last section has the figures that no question or section shows."""
    shown = {answer.figure for answer in content.answers}
    for section in content.sections:
        shown |= set(section.figures)
        yield section, tuple(content.picture(name) for name in section.figures)
    left = tuple(picture for picture in content.pictures if picture.name not in shown)
    if left:
        yield Section("Further figures", ""), left


def _others(content: Content) -> Iterator[tuple[str, str]]:
    """Comparisons that no answer shows: heading and table of each family. Holm's correction covers one family, and so
    one table."""
    shown = {judged.comparison.name for answer in content.answers for judged in (*answer.deciding, *answer.further)}
    for family in content.judgement.sweep.families:
        left = [each for each in content.judgement.comparisons(family) if each.comparison.name not in shown]
        if left:
            yield FAMILIES.get(family, family.replace("_", " ").capitalize()), _compared(content.judgement, left)


def _points(content: Content) -> Iterator[tuple[str, str]]:
    """Name and table of points of each sweep: the part's sweep, and the sweeps before or after the part's sweep."""
    for name, judgement in (("All arms", content.judgement), *content.seen.after.items()):
        yield name.replace("_", " ").capitalize(), tables.points(judgement).markdown


def _compared(judgement: Judgement, judged: Sequence[Judged]) -> str:
    """Table of comparisons in Markdown; empty without comparisons."""
    return _unless_empty(tables.comparisons(judgement, judged))


def _unless_empty(table: tables.Table) -> str:
    return table.markdown if table.lines else ""


def reading(judgement: Judgement) -> Iterator[str]:
    """Explanations of the columns and marks of the tables, each in Markdown."""
    sweep = judgement.sweep
    yield "**Ratio**: A ÷ B, typical of pairs of turns in one round. Under 1, A takes less."
    if len(sweep.looks) > 1:
        level, looks, confidence = sweep.limits.level, len(sweep.looks), percent(judgement.confidence)
        yield (
            f"**{confidence} interval**: the sweep is judged at up to {looks} declared numbers of blocks (looks). The "
            f"looks share an error probability of {level:g}, and each has {level:g} ÷ {looks} = {sweep.level:.3g}. So "
            f"the interval of a ratio is a {confidence} interval. Numbers without a verdict have 95 % intervals."
        )
    yield "**Thin lines** in figures of ratios: the ratio of plain means, pauses included. This ratio has no verdict."
    yield "**p (Holm)**: how often equal servers would show such a ratio, corrected for the number of comparisons."
    yield "**Mean** of an arm: the geometric mean of the blocks’ means, with an interval of 95 %."
    yield "**A/A pair**: one setting, started as two servers. A difference between the two is noise, or our fault."
    yield f"**{NOTHING}**: not measured, too few blocks for an interval, or too few requests for a percentile."


def method(judgement: Judgement) -> Iterator[str]:
    """Sentences on the method by which this sweep was measured and judged."""
    sweep, limits = judgement.sweep, judgement.sweep.limits
    looks = "one look has all" if len(sweep.looks) == 1 else f"each of {len(sweep.looks)} looks has a share"
    yield "A block starts every server afresh, warms it up, and stops it at the end."
    yield _turns(sweep)
    yield "Two turns of one round are a pair. A slow moment of the machine affects both turns."
    yield f"The typical ratio leaves out the highest and the lowest {percent(limits.trimmed)} of a block’s pairs."
    confidence = percent(judgement.confidence)
    yield f"Intervals are Student’s t over blocks, at {confidence}: {looks} of the error probability."
    has_cpu = any(each.measure == "cpu" for each in sweep.comparisons)
    named = "FASTER, SLOWER, and of processor time LESS and MORE," if has_cpu else "FASTER and SLOWER"
    yield f"{named} need an interval without 1, and a p under {sweep.level:.3g}."
    yield "The p comes from an exact sign-flip test over blocks, with Holm’s correction over the declared comparisons."
    low, high = limits.equivalent_low, limits.equivalent_high
    yield f"EQUIVALENT needs the whole interval within {low:g} to {high:g}. INCONCLUSIVE does not mean equal."
    yield _loops(sweep)
    yield "Every reply is validated. A round in which other programs took the cores is left out for all arms."
    yield from _drawn(judgement)


def _drawn(judgement: Judgement) -> Iterator[str]:
    """Sentence on the cores and orders that the seed drew. Nothing if no servers were pinned to cores."""
    first = next((block for block in judgement.blocks if block.server_cores), None)
    if first is None:
        return
    server, load = (", ".join(map(str, each)) for each in (first.server_cores, first.load_cores))
    drew = f"servers on core {server}" + f", the load on core {load}" * bool(load)
    yield f"Seed {judgement.sweep.seed} drew cores ({drew}), requests, and the order of starts and turns."


def _turns(sweep: Sweep) -> str:
    """Sentence on the length of a turn of an arm: of a slice, or of a window."""
    if isinstance(sweep.turns, Slices):
        return f"Within a block the arms take turns of {1000 * sweep.turns.counted_s:.0f} ms or more, in random order."
    counted = [arm.setting["client"] == PEER_CLIENT and arm.setting["rate_hz"] is None for arm in sweep.arms]
    took = [] if all(counted) else [f"{sweep.turns.duration_s:g} s"]
    took += [f"{sweep.turns.calls:,} calls of each client of a peer"] * any(counted)
    return f"Within a block the arms take turns of {' or '.join(took)}, in random order."


def _loops(sweep: Sweep) -> str:
    """Sentences on the closed loop and the open loop of the sweep's arms."""
    rates = {arm.setting["rate_hz"] is None for arm in sweep.arms}
    closed = "A client sends a request after each reply. So with more clients each waits longer, by arithmetic alone."
    opened = "Requests are due at a given rate. Response time counts from the due time, also after a late send."
    if any(arm.setting["rate_hz"] is not None and arm.setting["client"] == PEER_CLIENT for arm in sweep.arms):
        opened = "Requests are due at a given rate. With a peer’s own client, response time counts from the send."
    return closed if rates == {True} else opened if rates == {False} else f"Closed loop: {closed} Open loop: {opened}"
