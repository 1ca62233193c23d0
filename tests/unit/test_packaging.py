"""What ``make`` installs and starts, and what kind of wheel a checkout gives."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from columnar.runtime import compiled

ROOT = Path(__file__).parents[2]
COMPILES = """
import pathlib, sys
from columnar.runtime import compiled
package = pathlib.Path(sys.argv[1])
folder = compiled.compiled_folder(package)
folder.mkdir(parents=True)
(folder / "one.so").touch()
(folder / compiled.DIGEST_FILE).write_text(compiled.digest(package))
"""
NEEDS_MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="no make")


@pytest.fixture(scope="module")
def make_environment() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_environment", ROOT / "make_environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_everything_an_environment_gets_is_pinned(make_environment: ModuleType) -> None:
    wanted = make_environment.requirements(["make", "dev"])
    assert all("==" in one for one in wanted)
    constraints = set((ROOT / "constraints.txt").read_text().split())
    # names are written as their projects write them there, and in lower case here
    missing = {re.sub(r"\[.*\]", "", one.partition(";")[0].lower()) for one in wanted} - constraints
    assert missing == set(), "constraints.txt pins it too, for what others ask of it"


def test_uv_looks_where_pip_does(make_environment: ModuleType, tmp_path: Path) -> None:
    general, own = tmp_path / "general", tmp_path / "own"
    general.write_text("[global]\nindex-url = https://general/simple\ntimeout = 9\n")
    own.write_text(
        "[global]\nindex-url = https://own/simple\nextra-index-url =\n  https://a/simple\n  https://b/simple\n"
    )
    files = [general, own, tmp_path / "none"]
    found = make_environment.uv_settings({"PIP_FIND_LINKS": "/wheels"}, files)
    assert found == {
        "UV_DEFAULT_INDEX": "https://own/simple",
        "UV_INDEX": "https://a/simple https://b/simple",
        "UV_FIND_LINKS": "/wheels",
    }
    assert make_environment.uv_settings({"UV_DEFAULT_INDEX": "mine", "UV_INDEX": "mine"}, files) == {}


def test_where_uv_does_not_succeed_pip_does_it(
    make_environment: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    called = []

    def run(command: list[str | Path], extra_env: dict[str, str] | None = None) -> str:
        words = [str(word) for word in command]
        called.append(words)
        if Path(words[0]).name == "uv":
            raise make_environment.CannotInstall("no index there\nand more")
        return ""

    monkeypatch.setattr(make_environment, "_run", run)
    assert make_environment.main([str(tmp_path / "env"), "dev"]) == 0
    said = capsys.readouterr().out
    assert "uv: no index there; pip does it, slower" in said
    by_pip = [words for words in called if words[0].endswith("python") and "constraints.txt" in words]
    assert len(by_pip) == 1
    assert any(word.startswith("pytest==") for word in by_pip[0])
    assert called[-1][-2:] == ["-e", "."]


def test_what_cannot_be_installed_is_told_plainly(
    make_environment: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(make_environment.importlib.util, "find_spec", lambda name: None)
    assert make_environment.main([str(tmp_path / "env")]) == 1
    assert "apt-get install python3-venv" in capsys.readouterr().err


@NEEDS_MAKE
def test_make_run_hands_its_settings_on(tmp_path: Path) -> None:
    wikka = tmp_path / "env" / "bin" / "wikka"
    wikka.parent.mkdir(parents=True)
    wikka.write_text('#!/bin/sh\necho "$COLUMNAR_COMPILED"; for word in "$@"; do echo "$word"; done\n')
    wikka.chmod(0o755)
    made = tmp_path / "env" / ".made"
    command = ["make", "-o", str(made), "run", f"VENV={tmp_path / 'env'}", "PORT=1", "WEB_PORT=-1", "WIKI_PORT=3"]
    above = (compiled.SWITCH, "MAKEFLAGS", "MFLAGS", "MAKELEVEL")  # of the make that runs the tests
    env = {key: value for key, value in os.environ.items() if key not in above} | {"PORT": "5000"}
    done = subprocess.run([*command, "DATA=my data"], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    options = ["--data", "my data", "--store-port", "1", "--web-port", "-1", "--port", "3", "--servers", "1"]
    assert done.stdout.splitlines() == ["background", "run", *options]
    env["COLUMNAR_COMPILED"] = "no"
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "no"
    done = subprocess.run(command[:5], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[5] == "9090", "a PORT of the environment is somebody else's"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """What a checkout holds, without anything compiled."""
    folder = tmp_path / "source"
    for name in ("columnar", "benchmarks", "wikka_port", "wikibench"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_compiled", "__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def wheel_of(source: Path, **env: str) -> Path:
    """As ``pip wheel`` has it made, without an environment of its own for that."""
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    environment = {key: value for key, value in os.environ.items() if key != compiled.SWITCH} | env
    command = [sys.executable, "-c", build, str(source.parent)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    (wheel,) = source.parent.glob("*.whl")
    return wheel


def test_without_a_compiler_the_wheel_is_pure(source: Path) -> None:
    wheel = wheel_of(source, CC="/nonexistent/cc")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not any("_compiled" in name for name in names)
    folders = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert folders == {"columnar", "wikka_port", "wikibench"}, "benchmarks and tests are of a checkout"


def test_an_editable_install_is_a_path_which_type_checkers_follow(source: Path) -> None:
    build = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"
    environment = os.environ | {compiled.SWITCH: "no"}
    command = [sys.executable, "-c", build, str(source.parent)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    (wheel,) = source.parent.glob("*editable*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (path,) = [name for name in opened.namelist() if name.endswith(".pth")]
        assert opened.read(path).decode().split() == [str(source)]
        assert not any(name.endswith(".py") for name in opened.namelist()), "a finder: mypy does not run it"


def test_a_wheel_with_compiled_modules_is_of_this_platform(source: Path) -> None:
    """What compiles is put in its place; ``python -m tests.first_minutes --wheel`` has the real one."""
    (source / "columnar" / "runtime" / "compiling.py").write_text(COMPILES)
    wheel = wheel_of(source)
    assert f"-cp3{sys.version_info.minor}-" in wheel.name
    assert "none-any" not in wheel.name
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(source.parent / "installed")
    assert compiled.are_fresh(source.parent / "installed" / "columnar")


def test_a_question_makes_no_environment(
    make_environment: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for asked, status in (("--help", 0), ("--nothing", 2)):
        with pytest.raises(SystemExit) as left:
            make_environment.main([asked])
        assert left.value.code == status
    assert "python3 make_environment.py .venv dev" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
