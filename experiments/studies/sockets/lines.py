"""Counts the lines of code of each API that create, connect, send, receive and close.

Counted are the lines of the peers in C between
``step: NAME`` and ``end``, but for blank lines and comments. They are the peers that the study measures, so they check
every error and set what is set, and hold no line that is for show.
"""

import re
from collections.abc import Mapping

from experiments.peers import PEERS
from experiments.studies.sockets.original import LINES, TABLE_2
from experiments.studies.sockets.sweeps import APIS, NAMES

STEPS = ("create", "connect", "send", "receive", "close")
"""The document's five operations."""


def counted(api: str) -> Mapping[str, int]:
    """Lines of each step of an API. Raises OSError, ValueError where a step has no end or is not there."""
    return steps((PEERS[f"c-{api}"].folder / "sockets" / f"{api}.c").read_text(encoding="utf-8"))


def steps(source: str) -> Mapping[str, int]:
    """Lines of each step in a source. ValueError where one is missing, has no end, or stands there twice."""
    found: dict[str, int] = {}
    for name, body in re.findall(r"/\* step: (\w+) \*/\n(.*?)\n *(?=/\* (?:end|step: \w+) \*/)", source, re.DOTALL):
        if name in found:
            raise ValueError(f"step {name} stands there twice")
        found[name] = sum(1 for line in body.splitlines() if _is_code(line))
    if missing := set(STEPS) - found.keys():
        raise ValueError(f"no step {', '.join(sorted(missing))}")
    return {name: found[name] for name in STEPS}


def _is_code(line: str) -> bool:
    text = re.sub(r"/\*.*?\*/|//.*", "", line).strip()
    return bool(text)


def table() -> list[tuple[str, ...]]:
    """Table 2 with ours beside theirs: a line for each API."""
    lines = []
    for api in APIS:
        each = counted(api)
        amount, ease, performance = TABLE_2.get(api, ("–", "–", "–"))
        theirs = str(LINES[api]) if api in LINES else "–"
        own = (*(str(each[step]) for step in STEPS), str(sum(each.values())))
        lines.append((NAMES[api], *own, theirs, amount, ease, performance))
    return lines


HEAD = ("API", *STEPS, "all five, counted", "theirs", "their amount of code", "their ease", "their performance")
