"""The report's page in a real browser: it opens from a file, offline, and is readable on any screen and on paper."""

from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.browser.chromium import Chromium
from tests.browser.page_faults import View, faults

pytestmark = pytest.mark.slow

PHONE, DESK = View(360), View(1280)
PAPER = View(794, media="print")
"""A4 at 96 dots an inch."""

POLICY = 'http-equiv="Content-Security-Policy"'

PLANTED = {
    "an external image": ("</main>", '<img src="https://example.org/a.png" alt="A picture."></main>', "a request to"),
    "a style from elsewhere": ("</head>", '<link rel="stylesheet" href="a.css"></head>', "a request to"),
    "an img without alt": ("</main>", '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></main>', "alternative"),
    "an img that is broken": ("</main>", '<img src="data:image/png;base64,AAAA" alt="A picture."></main>', "not shown"),
    "a figure without a caption": ("</main>", "<figure><hr></figure></main>", "a figure without caption"),
    "console.error": ("</main>", "<script>console.error('planted')</script></main>", "planted"),
    "an exception": ("</main>", "<script>planted()</script></main>", "exception: ReferenceError"),
    "a table outside its box": (
        "</main>",
        "<table><tr><td><div style='width: 90rem'>wide</div></td></tr></table></main>",
        "sideways: TABLE",
    ),
    "a box that no keyboard scrolls": ('tabindex="0" ', "", "scrolls, not by keyboard"),
    "no width for telephones": ('name="viewport"', 'name="other"', "sideways: laid out 980 wide"),
    "a heading out of order": ("</main>", "<h5>planted</h5></main>", "heading out of order: H5"),
    "a second title": ("</main>", "<h1>planted</h1></main>", "not one h1"),
    "a link without target": ("</main>", '<a href="#planted">there</a></main>', "link without target: #planted"),
    "faint text": ("</main>", '<p style="color: #999">planted</p></main>', "contrast 2.85: planted"),
}
"""Planted faults: a text of the page, the text in its place, and the fault that must be found."""


VIEWS = [PHONE, DESK, PAPER, View(360, dark=True), View(1280, dark=True), View(794, dark=True, media="print")]


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("of", ["page", "index_page"])
def test_a_page_has_no_fault(
    browser: Chromium, of: str, view: View, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A report's page and the index page of all studies request nothing but themselves. With folds open and closed they
    have no error, no picture without text, no sideways scrolling and no faint text."""
    page: Path = request.getfixturevalue(of)
    assert faults(browser, page, view) == []
    opened = tmp_path / "opened.html"
    opened.write_text(page.read_text(encoding="utf-8").replace("<details>", "<details open>"), encoding="utf-8")
    assert faults(browser, opened, view) == []


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_planted_is_found(browser: Chromium, page: Path, tmp_path: Path, plant: str) -> None:
    """Each check finds its planted fault, with the page's policy switched off."""
    instead_of, planted, expected = PLANTED[plant]
    text = page.read_text(encoding="utf-8").replace(POLICY, "")
    assert instead_of in text
    bad = tmp_path / "bad.html"
    bad.write_text(text.replace(instead_of, planted), encoding="utf-8")
    assert expected in "\n".join(faults(browser, bad, PHONE))


def test_the_policy_forbids_every_request(browser: Chromium, page: Path, tmp_path: Path) -> None:
    """The page's policy refuses a foreign picture and a script before a request is sent."""
    text = page.read_text(encoding="utf-8")
    bad = tmp_path / "bad.html"
    script = "<script>document.title = 'run'</script>"
    bad.write_text(text.replace("</main>", f'<img src="https://example.org/a.png" alt="A.">{script}</main>'))
    found = "\n".join(faults(browser, bad, DESK))
    assert "Content Security Policy" in found
    assert browser.evaluate("document.title !== 'run'")


def test_tables_and_figures_scroll_in_their_own_box(browser: Chromium, page: Path) -> None:
    """On a telephone tables and figures keep a readable width. On a desktop no figure scrolls."""
    widest = "Math.max(...[...document.querySelectorAll('{}')].map((box) => box.scrollWidth - box.clientWidth))"
    faults(browser, page, PHONE)
    assert browser.evaluate(widest.format(".wide:has(> table)")) != 0
    assert browser.evaluate(widest.format("figure .wide")) == 38 * 16 - (360 - 2 * 16)
    faults(browser, page, DESK)
    assert browser.evaluate(widest.format("figure .wide")) == 0


def test_the_list_of_sections_leads_to_each(browser: Chromium, page: Path) -> None:
    """The list has a link for each section, and a click brings the section's heading into view."""
    faults(browser, page, DESK)
    links, sections = (f"document.querySelectorAll('{name}').length" for name in ("nav a", "h2"))
    assert browser.evaluate(f"{links} >= 3 && {links} === {sections}")
    browser.evaluate("[...document.querySelectorAll('nav a')].at(-2).click()")
    heading = "[...document.querySelectorAll('h2')].at(-2).getBoundingClientRect().top"
    assert browser.evaluate(f"{heading} >= -1 && {heading} < innerHeight")


def test_a_browser_that_was_closed_is_gone(executable: str, tmp_path: Path) -> None:
    """A closed browser has no process left. A second close has no effect."""
    with closing(Chromium(executable, tmp_path)) as other:
        processes = [psutil.Process(other.process.pid), *psutil.Process(other.process.pid).children(recursive=True)]
        assert len(processes) > 1
    other.close()
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert alive == []
