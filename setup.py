"""What ``pyproject.toml`` cannot say: the hot modules are compiled as the package is built.

Without a C compiler the package is built all the same and runs its sources (``columnar.compiled``).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildAndCompile(build_py):
    def run(self) -> None:
        super().run()
        target = ROOT / "columnar" if self.editable_mode else Path(self.build_lib) / "columnar"
        subprocess.run([sys.executable, "-m", "columnar.compiling", str(target.resolve())], cwd=ROOT, check=False)


class OfThisPlatform(Distribution):
    def has_ext_modules(self) -> bool:
        """The wheel holds machine code."""
        return True


setup(cmdclass={"build_py": BuildAndCompile}, distclass=OfThisPlatform)
