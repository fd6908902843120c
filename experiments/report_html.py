"""Markdown into one HTML page that needs nothing else: figures inside it, styles inside it, no script, no address.

Rules: what the page says is the Markdown's, word for word, with a list of its sections; a policy in it forbids the
browser every request; a paragraph that is a picture with a caption becomes a figure, whose text alternative is the
picture's; tables and figures scroll on their own, by keyboard too, where the screen is narrow; dark where the reader's
system is dark, plain in print. Left out: HTML in the Markdown, which is shown as text.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}

_MARKED = {
    "FASTER": "different",
    "SLOWER": "different",
    "EQUIVALENT": "same",
    "INCONCLUSIVE": "open",
    "CONFIRMED": "same",
    "CONTRADICTED": "different",
    "NOT TESTABLE": "open",
}
"""The class of a verdict or status that stands in bold."""


SECTIONS_MIN = 3
"""A page with fewer sections has no list of them."""

_BOXED = re.compile(r"<table>.*?</table>|(?<=<figure>)<img [^>]*>", re.DOTALL)


def page(markdown: str, title: str, folder: Path) -> str:
    """The page. Pictures are read from ``folder``; raises OSError where one is missing."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    _make_figures(tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "image":
                child.attrSet("src", _inlined(folder / str(child.attrGet("src"))))
        _mark_verdicts(token.children or ())
    sections = _name_headings(tokens)
    boxes = _boxes(tokens)
    body = parser.renderer.render(tokens, parser.options, {})
    # Text has no "<" or ">" of its own in the body, so that what is matched are the tags that the renderer wrote.
    body = _BOXED.sub(lambda found: f"{next(boxes)}{found[0]}</div>", body)
    body = body.replace("<pre>", '<pre tabindex="0" role="group" aria-label="Text">')
    if len(sections) >= SECTIONS_MIN:
        body = body.replace("<h2", f"{_contents(sections)}<h2", 1)
    return _PAGE.format(title=escape(title), style=_STYLE, body=body)


def _name_headings(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Gives every heading an id, made of its words; returns the ids and texts of the sections."""
    found: dict[str, int] = {}
    sections = []
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = _plain(inline)
        name = re.sub(r"\W+", "-", text.lower()).strip("-") or "section"
        found[name] = found.get(name, 0) + 1
        name = name if found[name] == 1 else f"{name}-{found[name]}"
        opening.attrSet("id", name)
        if opening.tag == "h2":
            sections.append((name, text))
    return sections


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _contents(sections: Sequence[tuple[str, str]]) -> str:
    lines = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>\n' for name, text in sections)
    return f'<nav aria-label="Sections"><ul>\n{lines}</ul></nav>\n'


def _boxes(tokens: Sequence[Token]) -> Iterator[str]:
    """The opening tag of a box that scrolls, for each table and figure in turn, named after the heading above it."""
    heading = ""
    for token, after in pairwise(tokens):
        if token.type == "heading_open":
            heading = _plain(after)
        what = {"table": "Table", "figure": "Figure"}.get(token.tag)
        if what and token.nesting == 1:
            yield f'<div class="wide" tabindex="0" role="group" aria-label="{escape(f"{what}: {heading}")}">'


def _inlined(picture: Path) -> str:
    data = base64.b64encode(picture.read_bytes()).decode("ascii")
    return f"data:{_TYPES[picture.suffix]};base64,{data}"


def _make_figures(tokens: Sequence[Token]) -> None:
    """Paragraphs that begin with a picture become figures, and their emphasis the caption."""
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        children = inline.children or []
        if opening.type == "paragraph_open" and children and children[0].type == "image":
            opening.tag = closing.tag = "figure"
            for child in children:
                if child.type in ("em_open", "em_close"):
                    child.tag = "figcaption"


def _mark_verdicts(children: Sequence[Token]) -> None:
    for opening, text in pairwise(children):
        if opening.type == "strong_open" and text.content in _MARKED:
            opening.attrSet("class", f"verdict {_MARKED[text.content]}")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""

_STYLE = """
:root { --ink: #22262b; --quiet: #5c636b; --paper: #ffffff; --line: #dfe3e7; --shade: #f5f7f8; --link: #00578a;
  --same: #00694c; --different: #9a4300; --open: #5c636b; --edge: #22262b2e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --quiet: #a3abb3; --paper: #16191c; --line: #343a40; --shade: #1f2327; --link: #7cc4ee;
    --same: #5fd3a9; --different: #f2a25c; --open: #a3abb3; --edge: #00000099; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: break-word;
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 1rem; letter-spacing: -0.01em; text-wrap: balance; }
h2 { font-size: 1.4rem; line-height: 1.3; margin: 3.5rem 0 1rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; line-height: 1.35; margin: 2.25rem 0 0.5rem; text-wrap: balance; }
p, ul, ol, pre { margin: 0 0 1rem; }
li { margin: 0.25rem 0; }
a { color: var(--link); }
a:focus-visible, .wide:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
nav ul { list-style: none; margin: 1.5rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.5rem;
  font-size: 0.9375rem; }
code { font-size: 0.9em; background: var(--shade); padding: 0.1em 0.3em; border-radius: 3px; }
pre { overflow-x: auto; background: var(--shade); padding: 0.75rem 1rem; border-radius: 4px; line-height: 1.45;
  font-size: 0.875rem; }
pre code { background: none; padding: 0; }
blockquote { margin: 1.5rem 0; padding: 0.75rem 1rem; background: var(--shade);
  border-left: 4px solid var(--different); }
blockquote p:last-child { margin: 0; }
.wide { overflow-x: auto; margin: 0 0 1.25rem; }
table { border-collapse: collapse; font-size: 0.875rem; line-height: 1.45; font-variant-numeric: tabular-nums; }
th { font-weight: 600; text-align: left; vertical-align: bottom; border-bottom: 2px solid var(--line); }
td { vertical-align: top; border-bottom: 1px solid var(--line); }
th, td { padding: 0.35rem 0.9rem 0.35rem 0; }
td[style*="right"] { white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
figure { margin: 1.5rem 0; }
figure .wide { margin: 0; background: #ffffff; border-radius: 4px; }
figure img { display: block; width: 100%; height: auto; }
figcaption { font-style: normal; font-size: 0.875rem; color: var(--quiet); margin-top: 0.4rem; }
.verdict { white-space: nowrap; letter-spacing: 0.02em; font-size: 0.92em; }
.same { color: var(--same); } .different { color: var(--different); } .open { color: var(--open); }
@media (max-width: 44rem) {
  .wide > table, figure img { min-width: 38rem; }
  th[style*="right"] { min-width: 4.5rem; }
  .wide { background: linear-gradient(to right, var(--paper) 30%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 30%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--edge), transparent) left / 0.75rem 100% no-repeat scroll,
    linear-gradient(to left, var(--edge), transparent) right / 0.75rem 100% no-repeat scroll; }
}
@media (min-width: 60rem) {
  .wide:has(> table) { margin-right: calc(-1 * min(18rem, (100vw - 46rem) / 2 - 1.5rem)); }
}
@media (max-width: 30rem) { body { font-size: 1rem; } main { padding: 1.5rem 1rem 3rem; } h1 { font-size: 1.6rem; } }
@media print {
  :root { --ink: #000000; --quiet: #444444; --paper: #ffffff; --line: #cccccc; --shade: #f3f3f3; --link: #000000;
    --same: #00694c; --different: #9a4300; --open: #444444; color-scheme: light; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; } nav { display: none; }
  .wide, pre { overflow: visible; background: none; } .wide:has(> table) { margin-right: 0; }
  pre { white-space: pre-wrap; }
  .wide > table, figure img { min-width: 0; } table { font-size: 7.5pt; }
  th, td { padding-right: 0.5rem; } figure, tr, li { break-inside: avoid; } h2, h3 { break-after: avoid; }
  thead { display: table-header-group; }
}
"""
