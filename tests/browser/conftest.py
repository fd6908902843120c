"""Fixtures of tests in a real browser: a headless Chromium, and the page of a report of a judged sweep.

Without a Chromium the tests are skipped. Where INTEROP_REQUIRED is set they fail, since no test may be skipped there.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from experiments.results.environment import look
from experiments.show import report
from experiments.show.content import Seen, content
from experiments.show.report import index
from tests.browser.chromium import Chromium
from tests.unit.experiments.show.judgements import FakePart, judged
from tests.unit.experiments.show.test_index import TWO

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def executable() -> str:
    """The path of a Chromium. Without one the test ends."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        message = "no Chromium here: apt-get install chromium"
        if os.environ.get("INTEROP_REQUIRED"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="module")
def browser(executable: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One browser for all tests, offline. Each test opens its own page."""
    with closing(Chromium(executable, tmp_path_factory.mktemp("profile"))) as chromium:
        for domain in ("Page", "Runtime", "Log", "Network"):
            chromium.call(f"{domain}.enable")
        chromium.call(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
        )
        yield chromium


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a report, alone in a folder."""
    of = content(FakePart(), Seen(judged(), {"later": judged(3)}, environment=look()))
    _, html = report.write(tmp_path_factory.mktemp("results"), of)
    return html.rename(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def index_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Index page of two studies and of a study that was not measured."""
    page = tmp_path_factory.mktemp("index") / index.HTML
    page.write_text(index.html(TWO), encoding="utf-8")
    return page
