"""A part of a service that is made when one of its methods is first called: until then its modules cost no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any


class LazyHandlers:
    """The first call loads modules on the loop, some milliseconds.  Owned by the loop."""

    def __init__(self, names: Iterable[str], make: Callable[[], object]) -> None:
        """``names``: of the methods; ``make``: the part that has them."""
        self._names = frozenset(names)
        self._make = make
        self._part: object | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A handler, for names of methods."""
        if name not in self._names:
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *args: Any) -> Any:
        if self._part is None:
            self._part = self._make()
        return getattr(self._part, name)(*args)
