"""Twins are made once, wholly or not at all, and whoever makes them ends with who asked for them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from columnar.runtime import compiled, compiling

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0
MAKES = """
import os, sys
library = sys.argv[1] + "/lib/columnar/model"
os.makedirs(library)
open(library + "/cell.so", "w").close()
"""
# says where it is, and lasts until its end of the pipe is closed
LASTS = """
import os, sys
open(sys.argv[1] + "/../pid.new", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + "/../pid.new", sys.argv[1] + "/../pid")
sys.stdin.buffer.read()
"""
# says how many C files it was told to compile at once
COUNTS = MAKES + "open(sys.argv[1] + '/../at_once', 'w').write(sys.argv[3])"
# heeds no pipe, until the file ``go`` is there
STAYS = """
import os, sys, time
folder = sys.argv[1] + "/.."
open(folder + "/pid.new", "w").write(str(os.getpid()))
os.rename(folder + "/pid.new", folder + "/pid")
while not os.path.exists(folder + "/go"):
    time.sleep(0.02)
"""
FAILS = """
import sys
print("a warning")
sys.exit("region.c:7:1: error: expected ';'" + chr(10) + "many more lines")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package; what is compiled from it is made by ``MAKES``."""
    copy = tmp_path / "columnar"
    shutil.copytree(ROOT / "columnar", copy, ignore=shutil.ignore_patterns("_compiled", "__pycache__"))
    monkeypatch.setattr(compiling, "_BUILD", MAKES)
    monkeypatch.setattr(compiling, "_check_tools", lambda: None)
    return copy


def await_that(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        pause.wait(0.02)


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def beside(package: Path, *options: str, build: str = LASTS) -> subprocess.Popen[str]:
    """``python -m columnar.runtime.compiling`` with a compiler that is ``build``."""
    program = (
        "import sys; from columnar.runtime import compiling; compiling._BUILD = sys.argv.pop(1); "
        "compiling._check_tools = lambda: None; sys.exit(compiling.main())"
    )
    command = [sys.executable, "-c", program, build, *options, str(package)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def compiles(package: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that compiles, in the background, and the pid of its compiler."""
    started = beside(package, "--background")
    pid = compiled.compiled_folder(package).parent / "pid"
    await_that(pid.exists)
    yield started, int(pid.read_text())
    started.kill()
    started.wait()
    for pipe in (started.stdin, started.stderr):
        assert pipe is not None
        pipe.close()


def left(package: Path) -> set[str]:
    return {path.name.removeprefix(compiled.tag()) for path in compiled.compiled_folder(package).parent.iterdir()}


def test_what_a_killed_one_left_is_removed_and_old_twins_replaced(package: Path) -> None:
    folder = compiled.compiled_folder(package)
    for name in (folder.name, folder.name + ".scratch", folder.name + ".old"):
        (folder.parent / name).mkdir(parents=True)
        (folder.parent / name / "left").touch()
    compiling.compile_modules(package)
    assert left(package) == {"", ".lock"}
    assert {path.name for path in folder.iterdir()} == {"columnar.model.cell.so", compiled.DIGEST_FILE}
    assert compiled.are_fresh(package)


def test_a_store_that_serves_leaves_it_one_core(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for the compiler gives it all of them, up to a bound."""
    monkeypatch.setattr(compiling, "_BUILD", COUNTS)
    monkeypatch.setattr(compiling.os, "sched_getaffinity", lambda _: set(range(64)))
    told = compiled.compiled_folder(package).parent / "at_once"
    compiling.compile_modules(package)
    assert int(told.read_text()) == compiling._AT_ONCE
    (compiled.compiled_folder(package) / compiled.DIGEST_FILE).unlink()
    compiling.compile_modules(package, wait=False)
    assert told.read_text() == "1"


def test_a_failure_is_one_line_and_leaves_the_twins_there_were(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = compiled.compiled_folder(package)
    folder.mkdir(parents=True)
    (folder / "kept").touch()
    monkeypatch.setattr(compiling, "_BUILD", FAILS)
    with pytest.raises(compiling.CannotCompile, match=r"^region\.c:7:1: error: expected ';'$"):
        compiling.compile_modules(package)
    assert left(package) == {"", ".lock"}
    assert (folder / "kept").exists()


def test_without_a_compiler_no_time_is_spent(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "columnar", tmp_path / "columnar", ignore=shutil.ignore_patterns("_compiled", "__pycache__"))
    command = [sys.executable, "-m", "columnar.runtime.compiling", str(tmp_path / "columnar")]
    env = {**os.environ, "CC": "/nonexistent/cc"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("there is no C compiler (/nonexistent/cc)")
    assert not compiled.compiled_folder(tmp_path / "columnar").exists()


def test_a_second_one_in_the_background_leaves(package: Path, compiles: tuple[subprocess.Popen[str], int]) -> None:
    second = beside(package, "--background")
    second.wait(PATIENCE_S)  # not communicate: the end of its input would end it
    _, said = second.communicate()
    assert (second.returncode, said) == (1, "another process compiles them\n")
    assert is_running(compiles[1])


def test_a_second_one_that_somebody_waits_for_begins_when_the_first_is_over(
    package: Path, compiles: tuple[subprocess.Popen[str], int]
) -> None:
    second = beside(package, build=MAKES)
    assert second.stderr is not None
    assert "Compiling" in second.stderr.readline()
    assert second.poll() is None
    compiles[0].kill()
    _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, said
    assert compiled.are_fresh(package)
    assert left(package) == {"", ".lock", "pid"}


def test_while_a_compiler_lives_nobody_else_begins(package: Path) -> None:
    """One that outlives a kill of its parent would write into the scratch folder of the next."""
    first, place = beside(package, build=STAYS), compiled.compiled_folder(package).parent
    try:
        await_that((place / "pid").exists)
        first.kill()
        first.communicate()
        second = beside(package, "--background")
        second.wait(PATIENCE_S)
        assert second.communicate()[1] == "another process compiles them\n"
    finally:
        (place / "go").touch()
    compiling.compile_modules(package)  # waits for its end
    assert compiled.are_fresh(package)


@pytest.mark.parametrize("end", ["kill -9", "the server is gone"])
def test_the_compiler_ends_with_who_started_it(
    package: Path, compiles: tuple[subprocess.Popen[str], int], end: str
) -> None:
    started, compiler = compiles
    if end == "kill -9":
        started.send_signal(signal.SIGKILL)
    else:
        started.communicate()  # it closes the pipe
    started.wait(PATIENCE_S)
    await_that(lambda: not is_running(compiler))
    assert not compiled.compiled_folder(package).exists()


def test_the_real_compiler_heeds_the_same_pipe(tmp_path: Path) -> None:
    """The first lines of the program that runs mypyc: the end of its input ends its group."""
    program = compiling._BUILD.partition("from mypyc")[0] + "threading.Event().wait()"
    running = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == -signal.SIGKILL


def test_it_is_nice_beside_a_server(compiles: tuple[subprocess.Popen[str], int]) -> None:
    assert os.getpriority(os.PRIO_PROCESS, compiles[1]) == 19
