"""Make the environment of a checkout: ``python3 make_environment.py VENV [EXTRA ...]``; ``make`` calls it.

    VENV without pip  ->  uv into it, by the pip of this Python  ->  packages, by uv  ->  the checkout itself

uv needs half a second of CPU where pip looks through the indexes for twelve.  Where uv cannot be had
or does not succeed, pip does it all.  Nothing is compiled here: a checkout runs its sources until
``columnar.runtime.compiling`` has made the twins.

Runs with the standard library alone, before anything is installed.
"""

from __future__ import annotations

import argparse
import configparser
import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent
_EXTRAS: Final = ("make", "plots")  # of pyproject.toml: what every environment of a checkout has
# pip's settings that uv has under another name
_SETTINGS: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}


class CannotInstall(Exception):
    """Why, and what to do, in a line or in the installer's own last words."""


def requirements(extras: Sequence[str]) -> list[str]:
    """What pyproject.toml asks for, with its pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(one for extra in extras for one in optional[extra])]


def uv_settings(environment: Mapping[str, str], files: Sequence[Path]) -> dict[str, str]:
    """The environment that makes uv look where pip does: of pip's own files, later ones first, and variables."""
    found = {}
    for path in files:
        parsed = configparser.RawConfigParser()
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):  # pip itself says what is wrong
            parsed.read_string(path.read_text(encoding="utf-8"))
        for name, variable in _SETTINGS.items():
            for section in ("global", "install"):
                if parsed.has_option(section, name):
                    found[variable] = parsed.get(section, name)
    for name, variable in _SETTINGS.items():
        value = environment.get("PIP_" + name.replace("-", "_").upper())
        if value:
            found[variable] = value
    given = {variable: " ".join(value.split()) for variable, value in found.items()}
    return {variable: value for variable, value in given.items() if variable not in environment}


def _pip_files() -> list[Path]:
    """Where pip looks for its settings on Linux and macOS."""
    home, asked = Path.home(), os.environ.get("PIP_CONFIG_FILE")
    user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    mac = home / "Library" / "Application Support" / "pip" / "pip.conf"
    usual = [Path("/etc/pip.conf"), home / ".pip" / "pip.conf", user / "pip" / "pip.conf", mac]
    return [*usual, *([Path(asked)] if asked else [])]


def _run(command: Sequence[str | Path], extra_env: dict[str, str] | None = None) -> str:
    """Its standard output; CannotInstall where it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **(extra_env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CannotInstall((done.stderr.strip() or done.stdout.strip())[-1_500:])
    return done.stdout


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Say what begins, and behind it how long it took."""
    print(f"  {what} ...", end="", flush=True)
    began = time.monotonic()
    try:
        yield
    except CannotInstall:
        print(" failed")
        raise
    print(f" {time.monotonic() - began:.0f} s")


class Environment:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.uv = Path(shutil.which("uv") or folder / "bin" / "uv")

    def make(self) -> None:
        """With a pip of its own only where this Python has none to lend."""
        if self._works():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        lends = importlib.util.find_spec("pip") is not None
        if not lends and importlib.util.find_spec("ensurepip") is None:
            raise CannotInstall(
                "This Python has neither pip nor ensurepip. On Debian or Ubuntu: apt-get install python3-venv"
            )
        _run([sys.executable, "-m", "venv", *(["--without-pip"] if lends else []), self.folder])

    def _works(self) -> bool:
        """Whether there is one whose Python still starts, and is of the kind that runs this."""
        asked = [str(self.python), "-c", "import sys; print(sys.version_info[:2])"]
        with contextlib.suppress(OSError):
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            return done.returncode == 0 and done.stdout.strip() == str(sys.version_info[:2])
        return False

    def _pip(self) -> list[str | Path]:
        """The lent one is run by the environment's Python, as ``pip --python`` does, without a pip for that."""
        lent = importlib.util.find_spec("pip")
        if lent is None or lent.origin is None:
            return [self.python, "-m", "pip"]
        runner = Path(lent.origin).with_name("__pip-runner__.py")
        return [self.python, runner] if runner.exists() else [sys.executable, "-m", "pip", "--python", self.python]

    def fetch_uv(self) -> None:
        """The version that pyproject.toml pins; nothing where the machine has one."""
        if self.uv.exists():
            return
        wanted = next(one for one in requirements(_EXTRAS) if one.startswith("uv=="))
        _run([*self._pip(), "install", "--quiet", "--no-compile", "--no-deps", "--only-binary", ":all:", wanted])

    def install_by_uv(self, wanted: Sequence[str]) -> None:
        settings = uv_settings(os.environ, _pip_files())
        install: list[str | Path] = [self.uv, "pip", "install", "--quiet", "--python", self.python]
        _run([*install, "-c", "constraints.txt", *wanted], settings)
        _run([*install, "--no-deps", "--no-build-isolation", "-e", "."], settings)

    def install_by_pip(self, wanted: Sequence[str]) -> None:
        install: list[str | Path] = [*self._pip(), "install", "--quiet", "--no-compile"]
        _run([*install, "-c", "constraints.txt", *wanted])
        _run([*install, "--no-deps", "--no-build-isolation", "-e", "."])


def install(folder: Path, extras: Sequence[str]) -> None:
    environment = Environment(folder)
    wanted = requirements([*_EXTRAS, *extras])
    with _told(f"an environment in {folder}"):
        environment.make()
    try:
        with _told("uv, which installs the rest"):
            environment.fetch_uv()
        with _told(f"{len(wanted)} packages and what they need (80 MB, where no cache has them)"):
            environment.install_by_uv(wanted)
    except CannotInstall as error:
        print(f"  uv: {error.args[0].splitlines()[0] if error.args[0] else 'no word'}; pip does it, slower")
        with _told(f"{len(wanted)} packages, by pip"):
            environment.install_by_pip(wanted)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make_environment.py",
        description="Make the environment of a checkout; make calls it.",
        epilog="example: python3 make_environment.py .venv dev",
    )
    parser.add_argument("folder", metavar="VENV", help="the folder to make it in")
    parser.add_argument("extras", metavar="EXTRA", nargs="*", help="optional dependencies of pyproject.toml, as dev")
    asked = parser.parse_args(arguments)
    folder, extras = asked.folder, asked.extras
    print(f"Installing into {folder}, once; nothing is compiled for it")
    try:
        install(Path(folder), extras)
    except CannotInstall as error:
        print(f"{error.args[0]}\nThe environment was not made; make tries again.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
