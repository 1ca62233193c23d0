"""Requests that note the parameters and fields that a handler reads, so that tests know all of them.


``noting()`` makes applications use these requests; it yields a set of (handler, "args" or "form", key).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from werkzeug.datastructures import ImmutableMultiDict
from werkzeug.wrappers import Request

from wikka_port.names import InvalidName
from wikka_port.urls import route

Noted = set[tuple[str, str, str]]


class _Noting(ImmutableMultiDict[str, str]):
    noted: Noted
    where: tuple[str, str]

    def _note(self, key: str) -> None:
        self.noted.add((*self.where, key))

    def __contains__(self, key: object) -> bool:
        self._note(str(key))
        return super().__contains__(key)

    def __getitem__(self, key: str) -> str:
        self._note(key)
        return super().__getitem__(key)

    def get(self, key: str, *given: Any, **more: Any) -> Any:
        self._note(key)
        return super().get(key, *given, **more)

    def getlist(self, key: str, *given: Any, **more: Any) -> Any:
        self._note(key)
        return super().getlist(key, *given, **more)


def _handler(path: str) -> str:
    try:
        return route(path, "HomePage").handler
    except InvalidName:
        return ""


def request_class(noted: Noted) -> type[Request]:
    class NotingRequest(Request):
        def _noting(self, given: Any, source: str) -> _Noting:
            made = _Noting(list(given.items(multi=True)))
            made.noted, made.where = noted, (_handler(self.path), source)
            return made

        @property
        def args(self) -> Any:
            if "noted_args" not in self.__dict__:
                self.__dict__["noted_args"] = self._noting(Request.args.fget(self), "args")  # type: ignore[attr-defined]
            return self.__dict__["noted_args"]

        @property
        def form(self) -> Any:
            if "noted_form" not in self.__dict__:
                self._load_form_data()
                self.__dict__["noted_form"] = self._noting(self.__dict__["form"], "form")
            return self.__dict__["noted_form"]

    return NotingRequest


@contextmanager
def noting() -> Iterator[Noted]:
    """Make all applications note while the ``with`` block lasts."""
    noted: Noted = set()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("wikka_port.app.Request", request_class(noted))
        yield noted
