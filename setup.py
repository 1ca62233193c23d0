"""What ``pyproject.toml`` cannot say: the hot modules are compiled as a wheel is built, and the wheel has its commit.

A wheel with the compiled modules is of this interpreter and platform.  Without a C compiler, or with
COLUMNAR_COMPILED=no, the wheel is pure and runs its sources (``columnar.runtime.compiled``).  A checkout that is
installed as editable is not compiled: ``make compile`` does it at once, ``make run`` while it serves.

The commit is in the file ``BUILD`` of the package (``columnar.version``), of a source distribution too.  It is that of
the checkout; COLUMNAR_BUILD=COMMIT says it where the build has no ``.git``, as the build of an image.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # a build front end runs this from elsewhere

from columnar import version  # noqa: E402 - found only now
from columnar.runtime import compiled  # noqa: E402

PACKAGE = ROOT / "columnar"
STATED = "COLUMNAR_BUILD"


def write_build(package: Path) -> None:
    """Write the file ``BUILD``, if the build is known.  Raises ValueError if COLUMNAR_BUILD is no build."""
    stated = os.environ.get(STATED)
    build = version.Build.from_stated(stated) if stated else version.build()
    if build.commit:
        (package / version.BUILD_FILE).write_text(f"{build.stated}\n", encoding="ascii")


class SourcesWithBuild(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_build(Path(base_dir) / "columnar")


class BuildWithTwins(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_build(Path(self.build_lib) / "columnar")
        twins = Path(self.build_lib) / "columnar" / "_compiled"
        shutil.rmtree(twins, ignore_errors=True)  # of an earlier build
        if not self.editable_mode and self.distribution.has_ext_modules():
            shutil.copytree(compiled.compiled_folder(PACKAGE), twins / compiled.tag())


class WheelOfThisPlatform(bdist_wheel):
    def run(self) -> None:
        """Compile first: what kind of wheel it is depends on whether that succeeds."""
        if os.environ.get(compiled.SWITCH) != "no":
            subprocess.run([sys.executable, "-m", "columnar.runtime.compiling", str(PACKAGE)], cwd=ROOT, check=False)
        self.root_is_pure = not self.distribution.has_ext_modules()
        super().run()


class WithTwins(Distribution):
    def has_ext_modules(self) -> bool:
        """Whether there is machine code of the sources as they are."""
        return os.environ.get(compiled.SWITCH) != "no" and compiled.are_fresh(PACKAGE)


setup(
    cmdclass={"build_py": BuildWithTwins, "bdist_wheel": WheelOfThisPlatform, "sdist": SourcesWithBuild},
    distclass=WithTwins,
)
