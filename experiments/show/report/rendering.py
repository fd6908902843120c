"""Rendering of all pages: templates, Markdown as HTML, embedded figures. An HTML page is one file, for offline use."""

import base64
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from experiments.judge.verdicts import Verdict
from experiments.show.figures.style import Picture

HERE = Path(__file__).parent

_CLASSES: Mapping[str, str] = {
    **{verdict.value: "different" for verdict in Verdict},
    **dict.fromkeys(("EQUIVALENT", "FLAT", "PROPORTIONAL", "CONFIRMED"), "same"),
    **dict.fromkeys(("INCONCLUSIVE", "NOT TESTABLE", "NOT MEASURED"), "open"),
    "CONTRADICTED": "different",
}
"""CSS class of each verdict. The class gives a verdict in bold its colour."""


def markdown_of(template: str, **given: object) -> str:
    """Page in Markdown, from a template and the values for the template."""
    text = _templates().get_template(template).render(**given)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def html_of(template: str, drawn: Mapping[str, str], **given: object) -> str:
    """Page in HTML, from a template and the values for the template. ``drawn``: the SVG of each figure, by the figure's
    name."""

    def source(picture: Picture) -> str:
        data = base64.b64encode(drawn[picture.name].encode()).decode("ascii")
        return f"data:image/svg+xml;base64,{data}"

    style = Markup((HERE / "page.css").read_text(encoding="utf-8"))
    return _templates().get_template(template).render(**given, source=source, style=style)


def _templates() -> Environment:
    """Templates of this folder, with the filter ``html``, which converts Markdown to HTML."""
    found = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=select_autoescape(("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["html"] = rendered
    return found


def rendered(text: str, label: str = "Table") -> Markup:
    """Markdown as HTML: a table scrolls in a box, and a verdict in bold has a colour. ``label``: name of the tables for
    screen readers."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        _mark_verdicts(token.children or ())
    body = str(parser.renderer.render(tokens, parser.options, {}))
    box = Markup('<div class="wide" tabindex="0" role="group" aria-label="{}"><table>').format(label)
    return Markup(body.replace("<table>", box).replace("</table>", "</table></div>"))


def _mark_verdicts(children: Sequence[Token]) -> None:
    """Give each verdict in bold among these tokens its CSS class."""
    for opening, text in pairwise(children):
        word = text.content.split(",")[0]
        if opening.type == "strong_open" and word in _CLASSES:
            opening.attrSet("class", f"verdict {_CLASSES[word]}")
