"""Compile the hot modules: ``python -m columnar.runtime.compiling [--background] [PACKAGE_FOLDER]``.

Needs mypyc (part of mypy), setuptools and a C compiler.  Takes some two minutes on one core, one minute on two, and no
time if the compiled modules are fresh.  Each module becomes a separate C file.  As many files are compiled in parallel
as there are cores, but only one beside a serving store.  Run by ``make compile``, ``make test`` and the build of a
wheel (``setup.py``), and beside a store that ``make run`` started (``--background``,
``columnar.runtime.background_compiling``).

    columnar/_compiled/TAG.lock       locked (flock) by the only process that compiles, and by its compiler
    columnar/_compiled/TAG.scratch    its temporary files; the next holder of the lock removes leftovers
    columnar/_compiled/TAG.old        the replaced compiled modules, for an instant

Invariants:
    I1. Two processes never compile the same package at once: the second waits, or with ``--background`` ends.
    I2. Compiled modules appear all together or not at all: their folder is renamed to its place when it is complete.
    I3. The compiler ends when the process that started it ends, in whatever way: each process reads a pipe from its
        parent, and stops at the pipe's end.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from columnar.runtime.compiled import DIGEST_FILE, HOT, SWITCH, are_fresh, compiled_folder, digest, source_of

TIME_LIMIT_S: Final = 3_600.0  # beside a busy store, at the lowest priority
# With -O1 the C compiler needs half the time; a get takes 14 % more of the loop, a loaded row 9 %, a scanned row 5 %.
OPTIMIZE: Final = "3"
_NICE: Final = 19
_AT_ONCE: Final = 8  # at most so many C compilers, of some 150 MB each
# The build of a wheel has none of the libraries that the sources import, so values of their types are Any.  Rules of
# strict about Any, which ``make check`` holds with the libraries, would then refuse sources that compile well.
OPTIONS: Final = (  # of mypyc
    "--ignore-missing-imports --no-warn-return-any --no-warn-unused-ignores --no-warn-redundant-casts"
    " --allow-any-generics --allow-subclassing-any --allow-untyped-calls --allow-untyped-decorators"
    " --disable-error-code=redundant-expr --disable-error-code=truthy-bool"
)
_WORDS: Final = 300  # of the compiler's output, in an error
_BUILD: Final = """
import os, signal, sys, threading
def end_with_parent():
    while os.read(0, 4096):  # not sys.stdin, whose lock would be held when the interpreter ends
        pass
    os.killpg(0, signal.SIGKILL)  # with the C compiler
threading.Thread(target=end_with_parent, daemon=True).start()
from concurrent.futures import ThreadPoolExecutor
from mypyc.build import mypycify
from setuptools import setup
from setuptools.command.build_ext import build_ext
target, level, at_once, options, *sources = sys.argv[1:]
options = options.split()
pool = ThreadPoolExecutor(int(at_once))
class SideBySide(build_ext):
    def build_extensions(self):
        if self.compiler.compiler_type == "unix":  # the others compile one file after the other
            for extension in self.extensions:  # calls between modules go straight there, not through a table
                extension.extra_compile_args = [*extension.extra_compile_args, "-fvisibility=hidden"]
            self.compiler.compile = self.compile
        super().build_extensions()
    def compile(self, sources, output_dir=None, macros=None, include_dirs=None, debug=False,
                extra_preargs=None, extra_postargs=None, depends=None):
        c = self.compiler
        macros, objects, postargs, preprocessing, build = c._setup_compile(
            output_dir, macros, include_dirs, sources, depends, extra_postargs)
        arguments = c._get_cc_args(preprocessing, debug, extra_preargs)
        one = lambda made: c._compile(made, *build[made], arguments, postargs, preprocessing)
        list(pool.map(one, objects))
        return objects
modules = mypycify([*options, *sources], opt_level=level, debug_level="0", target_dir=target + "/c",
                   multi_file=True)
for module in modules:
    module.define_macros = [("NDEBUG", "1")]
setup(name="twins", packages=[], py_modules=[], ext_modules=modules, cmdclass={"build_ext": SideBySide}, script_args=[
    "--quiet", "build_ext", "--parallel", at_once, "--build-lib", target + "/lib", "--build-temp", target + "/o"])
pool.shutdown()
"""


class CannotCompile(Exception):
    """The modules cannot be compiled.  The text is the reason in one line, in the compiler's words if there are any."""


class CompilationInProgress(Exception):
    """A different process compiles the package now."""


def compile_modules(package: Path, *, wait: bool = True) -> Path:
    """Compile the hot modules of the ``columnar`` package at ``package`` into it.  Returns the folder of the result.

    Blocks for a minute or two.  Raises CannotCompile, and then has changed nothing.  Without ``wait`` it uses only one
    core, and raises CompilationInProgress instead of waiting for a different process.
    """
    folder = compiled_folder(package)
    with _lock(folder, wait=wait) as lock:
        scratch = folder.with_name(folder.name + ".scratch")
        replaced = folder.with_name(folder.name + ".old")
        _clean_up(scratch, replaced)
        if are_fresh(package):
            return folder
        try:
            made_of = digest(package)
            _build(package, scratch, lock, _cores() if wait else 1)
            fresh = scratch / "twins"
            fresh.mkdir()
            library = scratch / "lib"
            for built in library.rglob("*"):
                if built.is_file():
                    shutil.copy(built, fresh / ".".join(built.relative_to(library).parts))
            (fresh / DIGEST_FILE).write_text(made_of + "\n", encoding="ascii")
            if folder.exists():
                folder.rename(replaced)
            fresh.rename(folder)
        finally:
            _clean_up(scratch, replaced)
    return folder


def _clean_up(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path, *, wait: bool) -> Iterator[IO[bytes]]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "wb") as lock:
        try:
            import fcntl
        except ImportError:  # Windows, where modules are compiled only by hand
            yield lock
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise CompilationInProgress from None
        yield lock


def _cores() -> int:
    """Return the number of cores to use, of those that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, _AT_ONCE)


def _build(package: Path, scratch: Path, lock: IO[bytes], at_once: int) -> None:
    """Run mypyc and the C compiler into ``scratch``, in a child process that holds the lock as long as it lives."""
    _check_tools()
    scratch.mkdir()
    sources = [str(source_of(module, package).relative_to(package.parent)) for module in HOT]
    said = scratch / "said"
    with open(said, "wb") as words:
        process = subprocess.Popen(
            [sys.executable, "-c", _BUILD, str(scratch), OPTIMIZE, str(at_once), OPTIONS, *sources],
            cwd=package.parent,
            stdin=subprocess.PIPE,
            stdout=words,
            stderr=words,
            env={**os.environ, SWITCH: "no", "MYPY_CACHE_DIR": str(scratch / "types"), "TMPDIR": str(scratch)},
            start_new_session=True,
            pass_fds=[lock.fileno()],
        )
    assert process.stdin is not None, "it was started with a pipe"
    try:
        status = process.wait(TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise CannotCompile(f"the compiler was not done after {TIME_LIMIT_S:.0f} s") from None
    finally:
        process.stdin.close()  # ends the process if it has not ended
        process.wait()
    if status:
        raise CannotCompile(_last_words(said.read_text(encoding="utf-8", errors="replace")))


def _check_tools() -> None:
    """Check that the tools are installed, before mypyc spends ten seconds on checking types."""
    for module in ("mypyc", "setuptools"):
        if importlib.util.find_spec(module) is None:
            raise CannotCompile(f"{module} is not installed")
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        raise CannotCompile(f"there is no C compiler ({compiler})")


def _last_words(said: str) -> str:
    """Return the first error, or else the last line; the whole output would be pages of C."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors or lines[-1:] or ["the compiler ended without a word"])[0][:_WORDS]


def _end_with_parent() -> None:
    """Wait in a thread for the end of the process that started us, which holds the other end of our standard input."""
    while os.read(0, 4096):  # not sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(1)  # the compiler then sees the end of its own pipe


def _beside_a_server() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def main() -> int:
    """Compile; returns the exit status 0 if the compiled modules are fresh.

    Returns 1 if the modules could not be compiled; the last line of stderr then has the reason.
    """
    arguments = sys.argv[1:]
    background = "--background" in arguments
    folders = [argument for argument in arguments if not argument.startswith("--")]
    package = Path(folders[0]).resolve() if folders else Path(__file__).parents[1]
    if background:
        _beside_a_server()
    if are_fresh(package):
        return 0
    if not background:
        _say(f"Compiling {len(HOT)} hot modules, once for this state of the sources; a minute or two")
    began = time.monotonic()
    try:
        compile_modules(package, wait=not background)
    except CompilationInProgress:
        _say("another process compiles them")
        return 1
    except (CannotCompile, OSError) as error:
        _say(f"The hot modules were not compiled; Columnar runs without, slower: {error}")
        return 1
    _say(f"Compiled {len(HOT)} hot modules in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
