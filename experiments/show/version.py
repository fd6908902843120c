"""Version of a recording's servers: this version, or an earlier one with its changes since. Every page has it.

The fingerprint decides it (``results/fingerprint.py``). Python's own version does not count here: pages are read on any
Python, and the table of the machine names the measured one. A recording without a fingerprint is of an earlier server.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from experiments.design.setting import Setting
from experiments.results.environment import Environment
from experiments.results.fingerprint import differing, taken

LABEL = "> **Version.** "
"""Beginning of a report's line on the version. Only this line changes after the report was written."""

THIS, EARLIER = "of this version", "of an earlier server"


@dataclass(frozen=True, slots=True)
class Version:
    """Sources that a recording measured, beside the sources that are here."""

    measured_on: str = ""
    """Day, such as ``24 November 2026``; empty where no record of the machine is beside the results."""
    commit: str = ""
    has_fingerprint: bool = False
    changed: tuple[str, ...] = ()
    """Places of the arms whose sources differ from the present ones."""

    @property
    def is_this(self) -> bool:
        """True where the measured sources are the present ones."""
        return self.has_fingerprint and not self.changed

    @property
    def words(self) -> str:
        """The version in a few words, for a cell of a table or within a sentence."""
        return THIS if self.is_this else f"{EARLIER}, {self.measured_on or 'of an unknown day'}"

    @property
    def sentence(self) -> str:
        """The version in a sentence, with the changes since."""
        if self.is_this:
            return f"The servers, clients and peers are {THIS}. They were measured on {self.measured_on}."
        if not self.measured_on:
            return f"It is {EARLIER}: no record of the machine stands beside the results."
        began = f"It is {EARLIER}, measured on {self.measured_on}"
        if not self.has_fingerprint:
            return f"{began} at commit {self.commit[:8]}, and has no fingerprint of its sources."
        return f"{began}. This has changed since: {', '.join(self.changed)}."


UNKNOWN = Version()
"""Version of results without a record of the machine."""


def line(version: Version) -> str:
    """Line of a report on its version, without the line's end."""
    return f"{LABEL}{version.sentence}"


def without(report: str) -> str:
    """A report in Markdown without the line on its version."""
    return re.sub(rf"^{re.escape(LABEL)}.*\n\n", "", report, count=1, flags=re.MULTILINE)


def of(environment: Environment | None, settings: Sequence[Setting]) -> Version:
    """The version of arms at these settings. Blocks for some 0.1 s. Raises OSError, SyntaxError."""
    if environment is None:
        return UNKNOWN
    then, measured_on = environment.sources, f"{datetime.fromisoformat(environment.before.at):%-d %B %Y}"
    if not then:
        return Version(measured_on, environment.commit)
    here = taken() | {"python": then["python"]}
    return Version(measured_on, environment.commit, True, differing(then, here, settings))
