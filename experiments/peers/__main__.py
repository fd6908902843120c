"""``make peers``: builds the peers that this machine can build, and says for each other peer which tool is missing.

A command that several peers share runs once, and commands of different languages run at the same time. A peer that
lacks a tool is not a failure. A command that fails is a failure, and its output is printed.
"""

import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from experiments.peers import BUILT, PEERS, SOURCES, digest, missing, stamp
from stock_service.rpc.process.command_line import Parser

DESCRIPTION = "Builds the servers and clients in other languages that this machine can build; takes 1 to 4 minutes."

BUILD_S = 600.0
"""Longest time for a command. The first command on a machine fetches libraries, and compiles them."""

AT_ONCE = 2
"""Number of commands that run at the same time. Each has further threads of its own."""


def main() -> int:
    """Builds the peers. Gives the process's exit code. Blocks until all peers are built."""
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
    """Runs a build command, and marks its peers as built. True where the command succeeded."""
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
