"""``make peers``: builds the peers that this machine can build, and prints the missing tools of every other peer.

A peer is a server of another language or project. Several peers can have one build command, which runs once. Up to
``AT_ONCE`` commands run at the same time. A peer whose tool is missing is not a failure. A command that fails is a
failure, and its output is printed.
"""

import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from experiments.peers import BUILT, PEERS, SOURCES, digest, missing, stamp
from stock_service.rpc.process.command_line import Parser

DESCRIPTION = "Builds the servers and clients in other languages that this machine can build; takes 1 to 4 minutes."

BUILD_S = 600.0
"""Longest time for a build command, in seconds. The first build on a machine fetches and compiles libraries."""

AT_ONCE = 2
"""Largest number of build commands that run at the same time. A command may use further threads."""


def main() -> int:
    """Builds the peers. Returns the exit code: 1 if a command failed, else 0. Blocks until all commands have ended."""
    Parser("python -m experiments.peers", DESCRIPTION).parse_args()
    wanting = {name: missing(name) for name in PEERS}
    for name, lines in wanting.items():
        for line in lines:
            print(f"{name}: {line}")
    BUILT.mkdir(parents=True, exist_ok=True)
    shared: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name in (name for name, lines in wanting.items() if PEERS[name].build and not lines):
        shared.setdefault((PEERS[name].language, PEERS[name].build), []).append(name)
    with ThreadPoolExecutor(AT_ONCE, "build") as pool:
        return 0 if all(list(pool.map(_build, shared, shared.values()))) else 1


def _build(wanted: tuple[str, tuple[str, ...]], names: Iterable[str]) -> bool:
    """Runs a build command in its language's folder, and marks its peers as built. Returns True if the command
    succeeded.

    ``wanted`` is the language and the command, and ``names`` are the peers that the command builds.
    """
    language, command = wanted
    for name in names:
        stamp(name).unlink(missing_ok=True)
    built_from = digest(SOURCES / language)
    try:
        done = subprocess.run(
            command,
            cwd=SOURCES / language,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"{', '.join(names)}: {' '.join(command)} took over {BUILD_S:g} s", flush=True)
        return False
    if done.returncode:
        print(f"{', '.join(names)}: {' '.join(command)} failed:\n{done.stdout}", flush=True)
        return False
    for name in names:
        stamp(name).write_text(built_from)
    print(f"built {', '.join(names)}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
