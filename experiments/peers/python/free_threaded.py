"""Finds a free-threaded CPython (without a GIL) for our own server, and installs the packages that the server needs.

``find`` prints the interpreter's version, or exits with 1 if the machine has no such interpreter. The environment
variable ``STOCK_SERVICE_FREE_THREADED`` names the interpreter. Without this variable, the first of ``NAMES`` on the
PATH is used. ``build FOLDER`` makes a virtual environment of the interpreter, with protobuf and the messages of gRPC's
health service. On sockets the server imports no other package. Protobuf has no C code for a free-threaded Python, so
``build`` installs protobuf's Python code.

A C extension that is not made for a free-threaded Python would turn the GIL on again. So ``build`` finally imports the
whole server, and fails if the GIL is then on. ``make peers`` runs ``find`` and ``build``. This file imports only the
standard library.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

VARIABLE = "STOCK_SERVICE_FREE_THREADED"
"""Environment variable that names the interpreter, by its path or by its name on the PATH."""

NAMES = ("python3.15t", "python3.14t", "python3.13t")
"""Usual names of a free-threaded interpreter that is installed beside other interpreters."""

ASK_S, INSTALL_S = 10.0, 300.0
"""``ASK_S`` is the longest time in seconds for an interpreter to print its version. ``INSTALL_S`` is the longest time
in seconds for each step of the installation."""

_ASK = (
    "import sys, sysconfig; sys.exit(1) if not sysconfig.get_config_var('Py_GIL_DISABLED') else "
    "print('Python', sys.version.split()[0], 'free-threaded')"
)

_CHECK = """
import sys
from stock_service.rpc.transports import load
import experiments.services.__main__
load("sockets")
sys.exit("what the server imports turns the GIL on" if sys._is_gil_enabled() else 0)
"""

ROOT = Path(__file__).resolve().parents[3]


def find(variables: Mapping[str, str] = os.environ) -> tuple[str, str] | None:
    """Returns the path of a free-threaded Python and its version line; None if the machine has no such Python. Blocks
    for some 50 ms.
    """
    named = variables.get(VARIABLE)
    for name in (named,) if named else NAMES:
        path = shutil.which(name, path=variables.get("PATH"))
        said = None if path is None else _said(path)
        if path is not None and said is not None:
            return path, said
    return None


def _said(path: str) -> str | None:
    """Version line of an interpreter; None for an interpreter with a GIL, or for a path without an interpreter."""
    try:
        done = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def build(path: str, folder: Path) -> int:
    """Makes the virtual environment of an interpreter anew. Blocks for minutes.

    Returns 0, or the exit code of the first step that failed. The failed step has printed the reason. Raises
    TimeoutExpired.
    """
    own = str(folder / "bin" / "python")
    install = (own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:")
    steps = (
        (path, "-m", "venv", "--clear", str(folder)),
        (*install, f"protobuf=={version('protobuf')}"),
        (*install, "--no-deps", f"grpcio-health-checking=={version('grpcio-health-checking')}"),
        (own, "-c", _CHECK),
    )
    for step in steps:
        code = subprocess.run(step, cwd=ROOT, timeout=INSTALL_S, check=False).returncode
        if code:
            return code
    return 0


def main(words: list[str]) -> int:
    """Runs ``find`` or ``build FOLDER``. Returns the process's exit code."""
    found = find()
    if found is None:
        return 1
    path, said = found
    if words[0] == "find":
        print(said)
        return 0
    return build(path, Path(words[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
