"""``python -m experiments selfcheck``: checks the load client and the statistics, on this machine, against results that
are known beforehand.

Every check gives findings. A finding has a measured value and the required value. The command prints the findings,
writes the findings and a description of the machine into a report, and exits with 1 if a finding failed. A check is
skipped if the check needs a program that is not installed. A skipped check does not fail, and its finding says how to
get the program.
"""

import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from experiments.results import environment
from experiments.results.environment import Environment
from experiments.results.files import write_at_once
from experiments.selfcheck.finding import Finding
from experiments.show.tables import Table

REPORT = "selfcheck.md"
IDLE_LOAD_MAX = 0.5
"""Largest load average, over the last minute, at which the machine counts as idle."""

CHECKS: dict[str, str] = {
    "replay": "Responses, one by one, against those that a queue of known service times must give",
    "analytic": "Responses of M/M/c queues against queueing theory",
    "stalls": "A server that stands still for 200 ms in every 10 s, seen by the open loop and by the closed one",
    "clients": "The load client compared with h2load and ghz (gRPC), and with a C and a Go client (sockets)",
    "interleaving": "One ratio in slices of several lengths, alone and among many servers",
    "statistics": "Intervals and tests on synthetic experiments with recorded noise and known ratios",
    "ab": "Equal arms, and an arm slowed by 5 %",
}
"""Title of every check by the check's name, in the order in which the checks run. A check is the module of the same
name. The function ``check`` of the module has one argument: the module's constant ``MINUTES``, or ``OVERNIGHT`` for a
long run.
"""


def findings_of(name: str, overnight: bool) -> list[Finding]:
    """Runs a check. Returns the findings of the check. Blocks for minutes, or for hours with ``overnight``."""
    module = import_module(f"experiments.selfcheck.{name}")
    found: list[Finding] = module.check(module.OVERNIGHT if overnight else module.MINUTES)
    return found


def run(names: Sequence[str], overnight: bool, out: Path) -> bool:
    """Runs checks, prints their findings, and writes the report into the folder ``out`` after each check. Blocks.

    Returns True if no finding failed. Raises OSError.
    """
    out.mkdir(parents=True, exist_ok=True)
    began = environment.look()
    if began.before.load_1_min > IDLE_LOAD_MAX:
        print(
            f"load average {began.before.load_1_min:g}: another program is running, and may make checks fail. "
            f"Start the checks at {IDLE_LOAD_MAX:g} or less.",
            file=sys.stderr,
        )
    sections, passed = [], True
    for name in names:
        print(f"{name}: {CHECKS[name]}", file=sys.stderr)
        began_s = time.monotonic()
        findings = findings_of(name, overnight)
        took_s = time.monotonic() - began_s
        for finding in findings:
            print(f"{_word(finding):8} {name}: {finding.name}: {finding.shown}; must: {finding.must}", flush=True)
        sections.append(_section(name, findings, took_s))
        passed = passed and all(finding.passed is not False for finding in findings)
        write_at_once(out / REPORT, _report(sections, overnight, began).encode())
    return passed


def _report(sections: Sequence[str], overnight: bool, here: Environment) -> str:
    machine = (
        f"{here.cpu_model}, {here.cores} cores, {here.kernel}, {here.python}, commit {here.commit[:12]}"
        f"{' with changes' if here.dirty else ''}; begun {here.before.at} at load {here.before.load_1_min:g}."
    )
    head = f"# The instrument, checked ({'overnight' if overnight else 'minutes'})\n\n{machine}\n\n"
    return head + "\n".join(sections)


def _section(name: str, findings: Sequence[Finding], took_s: float) -> str:
    lines = tuple((finding.name, finding.shown, finding.must, f"**{_word(finding)}**") for finding in findings)
    table = Table(("What", "Shown", "Must", "Passed"), lines, texts=4).markdown
    return f"## {name}\n\n{CHECKS[name]}; {took_s:.0f} s.\n\n{table}"


def _word(finding: Finding) -> str:
    return {True: "passed", False: "FAILED", None: "skipped"}[finding.passed]
