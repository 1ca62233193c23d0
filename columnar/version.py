"""The version of the program, as ``columnar --version`` and the status say it."""

from typing import Final

VERSION: Final = "0.1.0"
