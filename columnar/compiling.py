"""Make the compiled twins (``columnar.compiled``): ``python -m columnar.compiling [PACKAGE_FOLDER]``.

Needs mypyc (it comes with mypy), setuptools and a C compiler; takes some 40 s, and nothing where the
twins are fresh.  Run by the installation (``setup.py``), ``make compile`` and ``make test``.
What it makes appears wholly or not at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from columnar.compiled import DIGEST_FILE, HOT, SWITCH, are_fresh, digest, source_of, twins_folder

TIME_LIMIT_S: Final = 900.0
_BUILD: Final = """
import sys
from mypyc.build import mypycify
from setuptools import setup
target, *sources = sys.argv[1:]
modules = mypycify(["--ignore-missing-imports", *sources], opt_level="3", debug_level="0", target_dir=target + "/c")
for module in modules:
    module.define_macros = [("NDEBUG", "1")]
setup(name="twins", packages=[], py_modules=[], ext_modules=modules, script_args=[
    "--quiet", "build_ext", "--build-lib", target + "/lib", "--build-temp", target + "/o"])
"""


class CannotCompile(Exception):
    """Why, in the compiler's own last words."""


def compile_twins(package: Path) -> Path:
    """Compile the hot modules of the ``columnar`` package at ``package`` into it; the folder of the twins."""
    made_of = digest(package)
    folder = twins_folder(package)
    with tempfile.TemporaryDirectory(prefix="columnar-compile-") as scratch:
        sources = [str(source_of(module, package).relative_to(package.parent)) for module in HOT]
        done = subprocess.run(
            [sys.executable, "-c", _BUILD, scratch, *sources],
            cwd=package.parent,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
            env={**os.environ, SWITCH: "no"},
        )
        if done.returncode:
            raise CannotCompile((done.stdout + done.stderr).strip()[-2_000:])
        fresh = folder.with_name(folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        library = Path(scratch) / "lib"
        for built in library.rglob("*"):
            if built.is_file():
                shutil.copy(built, fresh / ".".join(built.relative_to(library).parts))
    (fresh / DIGEST_FILE).write_text(made_of + "\n", encoding="ascii")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return folder


def main() -> int:
    package = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).parent
    if are_fresh(package):
        return 0
    print(f"Compiling {len(HOT)} modules, once; some 40 s", file=sys.stderr)  # noqa: T201
    try:
        folder = compile_twins(package)
    except (CannotCompile, subprocess.TimeoutExpired) as error:
        print(f"The hot modules were not compiled; Columnar runs without, some slower. {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"Compiled {len(HOT)} modules into {folder}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
