"""Compiled twins are used when they are of the sources that stand there, and never otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from columnar.runtime import compiled

ROOT = Path(__file__).parents[2]


def state_of(root: Path, switch: str | None = None) -> str:
    """What a new process says of the package under ``root``."""
    env = {key: value for key, value in os.environ.items() if key != compiled.SWITCH} | {"PYTHONPATH": str(root)}
    if switch is not None:
        env[compiled.SWITCH] = switch
    asked = "import columnar.runtime.compiled as c; print(c.__file__); print(c.state)"
    done = subprocess.run([sys.executable, "-c", asked], env=env, cwd=root, capture_output=True, text=True, check=True)
    place, state = done.stdout.splitlines()
    assert Path(place).is_relative_to(root)
    return state


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package with twins that seem fresh."""
    shutil.copytree(ROOT / "columnar", tmp_path / "columnar", ignore=shutil.ignore_patterns("_compiled", "__pycache__"))
    folder = compiled.compiled_folder(tmp_path / "columnar")
    folder.mkdir(parents=True)
    (folder / compiled.DIGEST_FILE).write_text(compiled.digest(tmp_path / "columnar") + "\n")
    for module in compiled.HOT:  # that no test imports
        (folder / f"{module}{EXTENSION_SUFFIXES[0]}").touch()
    return tmp_path


def test_every_hot_module_is_listed_once() -> None:
    """mypyc refuses a list that names one twice, and then all of them run as sources."""
    assert sorted(set(compiled.HOT)) == sorted(compiled.HOT)


def test_every_hot_module_has_a_source() -> None:
    for module in compiled.HOT:
        assert compiled.source_of(module).is_file(), module


def test_fresh_twins_are_used(copied: Path) -> None:
    assert state_of(copied) == "compiled"


def test_twins_of_other_sources_are_not_used(copied: Path) -> None:
    with compiled.source_of("columnar.regions.region", copied / "columnar").open("a") as source:
        source.write("# one more line\n")
    assert "make compile" in state_of(copied)


def test_twins_of_which_one_is_missing_are_not_used(copied: Path) -> None:
    next(compiled.compiled_folder(copied / "columnar").glob("columnar.wire.caller.*")).unlink()
    said = state_of(copied)
    assert said.startswith("interpreted (1 compiled modules are missing, columnar.wire.caller among them: install")


def test_a_changed_constant_counts(copied: Path) -> None:
    """The compiler writes constants into their users, wherever they are defined."""
    with (copied / "columnar" / "limits.py").open("a") as source:
        source.write("# one more line\n")
    assert "make compile" in state_of(copied)


def test_without_twins_the_sources_run(copied: Path) -> None:
    shutil.rmtree(copied / "columnar" / "_compiled")
    assert state_of(copied) == "interpreted (they were not compiled: there was no C compiler at the installation)"


def test_in_a_checkout_it_says_how_to_compile(copied: Path) -> None:
    shutil.rmtree(copied / "columnar" / "_compiled")
    for name in ("setup.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copied / name)
    assert state_of(copied) == "interpreted (they were not compiled: make compile)"


def test_the_switch(copied: Path) -> None:
    assert state_of(copied, "no") == "interpreted (COLUMNAR_COMPILED=no)"


def test_processes_of_this_run_are_compiled() -> None:
    """What the integration tests start is what users start."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if shutil.which("cc") is None or not header.exists():
        pytest.skip("no C compiler or no Python.h here: the tests ran against interpreted processes alone")
    assert state_of(ROOT) == "compiled", "run: make compile"


def test_what_is_half_compiled_does_not_appear(tmp_path: Path) -> None:
    """A source that the compiler refuses: no folder of twins, exit code 1, the compiler's words.

    It looks at this module and what it imports, which takes a third of the time of all.
    """
    shutil.copytree(ROOT / "columnar", tmp_path / "columnar", ignore=shutil.ignore_patterns("_compiled", "__pycache__"))
    with compiled.source_of("columnar.model.cell", tmp_path / "columnar").open("a") as source:
        source.write('BROKEN: int = "a text"\n')
    program = "import sys; from columnar.runtime import compiling; compiling.HOT = ('columnar.model.cell',); "
    command = [sys.executable, "-c", program + "sys.exit(compiling.main())", str(tmp_path / "columnar")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "BROKEN" in done.stderr or "cell.py" in done.stderr
    assert not compiled.compiled_folder(tmp_path / "columnar").exists()
