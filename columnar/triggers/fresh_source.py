"""Source that an author changed: taken up by a worker without a start of its process.

Modules are forgotten, so that the next call imports them again; calls that run keep those they have.  Forgotten are the
modules of the packages that triggers may name, and every other module that came after the worker's start from a ``.py``
file outside of installed packages.  All other modules stay as they are: they may hold what cannot be made twice.
"""

from __future__ import annotations

import importlib
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Final

_INSTALLED: Final = tuple({*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()})


def forgotten(loaded: Mapping[str, ModuleType], at_start: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """(pure) Names of the modules to forget."""
    kept, packages = frozenset(at_start), frozenset(name.partition(".")[0] for name in allowed)
    return [name for name, module in loaded.items() if name not in kept and _is_an_authors(name, module, packages)]


def _is_an_authors(name: str, module: ModuleType, packages: frozenset[str]) -> bool:
    if name.partition(".")[0] in packages:
        return True
    path = getattr(module, "__file__", None) or ""
    return path.endswith(".py") and not path.startswith(_INSTALLED)


def forget(at_start: Iterable[str], allowed: Iterable[str]) -> None:
    for name in forgotten(dict(sys.modules), at_start, allowed):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
