"""Version of a recording's servers: the present version, or an earlier version, with the sources that have changed
since.

Every page states the version beside its numbers. The fingerprint of the sources decides the version
(``results/fingerprint.py``). The version of Python does not count: a page may be made with another Python than the
measurement. The table of the machine names the Python of the measurement. A recording without a fingerprint counts as a
recording of an earlier server.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from experiments.design.setting import Setting
from experiments.results.environment import Environment
from experiments.results.fingerprint import differing, taken

LABEL = "> **Version.** "
"""Beginning of a report's line on the version. Only this line of a report depends on the present sources."""

THIS, EARLIER = "of this version", "of an earlier server"


@dataclass(frozen=True, slots=True)
class Version:
    """Comparison of a recording's sources with the present sources."""

    measured_on: str = ""
    """Day of the measurement, such as ``24 November 2026``. Empty without a record of the machine."""
    commit: str = ""
    """Commit at which the recording was made. Empty without a record of the machine."""
    has_fingerprint: bool = False
    changed: tuple[str, ...] = ()
    """Names of the sources that have changed since the recording."""

    @property
    def is_this(self) -> bool:
        """True where the recording's sources equal the present sources."""
        return self.has_fingerprint and not self.changed

    @property
    def words(self) -> str:
        """Version in a few words, which fit into a table's cell or a sentence."""
        return THIS if self.is_this else f"{EARLIER}, {self.measured_on or 'of an unknown day'}"

    @property
    def sentence(self) -> str:
        """Version in sentences, with the changes since the recording."""
        if self.is_this:
            return f"The servers, clients and peers are {THIS}. They were measured on {self.measured_on}."
        if not self.measured_on:
            return f"The results are {EARLIER}, and have no record of the machine."
        began = f"The results are {EARLIER}, measured on {self.measured_on}"
        if not self.has_fingerprint:
            return f"{began} at commit {self.commit[:8]}, and have no fingerprint of their sources."
        return f"{began}. These sources have changed since: {', '.join(self.changed)}."


UNKNOWN = Version()
"""Version of results without a record of the machine."""


def line(version: Version) -> str:
    """Line of a report with the version, without a line break."""
    return f"{LABEL}{version.sentence}"


def without(report: str) -> str:
    """Report in Markdown without the line on the version."""
    return re.sub(rf"^{re.escape(LABEL)}.*\n\n", "", report, count=1, flags=re.MULTILINE)


def of(environment: Environment | None, settings: Sequence[Setting]) -> Version:
    """Version of a recording, decided by the sources of the servers that have these settings. The first call blocks for
    some 0.3 s. Raises OSError, SyntaxError."""
    if environment is None:
        return UNKNOWN
    then, measured_on = environment.sources, f"{datetime.fromisoformat(environment.before.at):%-d %B %Y}"
    if not then:
        return Version(measured_on, environment.commit)
    here = taken() | {"python": then["python"]}
    return Version(measured_on, environment.commit, True, differing(then, here, settings))
