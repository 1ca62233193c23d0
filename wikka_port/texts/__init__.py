"""Texts that the wiki says to people, in their language.

A text stands in English where it is said.  ``_`` finds what a language's file has for it, and English where it has
nothing; ``N_`` marks a constant that ``_`` says later.  The language is that of the request (``speak``).  ``_w`` says
in the language of the wiki what is kept, or what others read: the note of an edit.  Texts of templates are put in when
a template is compiled, once for each language (``texts.folding``).

    _("A password has at least {count} characters.", count=10)
    _n("{n} page", "{n} pages", 3)

Logs, commands, and what is read by programs stay English.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final, Self

from wikka_port.texts.catalogue import ENGLISH, Catalogue

_of_request: Final[ContextVar[Catalogue | None]] = ContextVar("of_request", default=None)
_of_wiki = ENGLISH  # of the process: one wiki


def _(text: str, **values: object) -> str:
    """``text`` in the language that is spoken, with ``values`` at their places in braces."""
    catalogue = spoken()
    said = catalogue.gettext(text)
    return _with(catalogue, said, values) if values else said


def _n(one: str, many: str, n: int, **values: object) -> str:
    """By the language's own rule for ``n``, which is a value too."""
    catalogue = spoken()
    return _with(catalogue, catalogue.ngettext(one, many, n), {"n": n, **values})


def _w(text: str, **values: object) -> str:
    """As ``_``, in the language of the wiki."""
    said = _of_wiki.gettext(text)
    return _with(_of_wiki, said, values) if values else said


def figure(value: float, form: str = ",") -> str:
    """As the language that is spoken writes it."""
    return spoken().figure(value, form)


class _Number(float):
    """A value that is written as its language writes numbers: ``{n:,}``."""

    value: float
    catalogue: Catalogue

    def __new__(cls, value: float, catalogue: Catalogue) -> Self:
        made = super().__new__(cls, value)
        made.value, made.catalogue = value, catalogue
        return made

    def __format__(self, form: str) -> str:
        return self.catalogue.figure(self.value, form) if form else str(self.value)


def _with(catalogue: Catalogue, said: str, values: Mapping[str, object]) -> str:
    return said.format(
        **{key: _Number(one, catalogue) if isinstance(one, int | float) else one for key, one in values.items()}
    )


def N_(text: str) -> str:  # noqa: N802 - gettext's name for it
    """``text`` itself: it is said by ``_`` where it is used, and found by ``texts.extracting`` here."""
    return text


def spoken() -> Catalogue:
    return _of_request.get() or _of_wiki


def speak(catalogue: Catalogue | None) -> None:
    """From here on, in this thread: the language of the request that it answers; None: there is none."""
    _of_request.set(catalogue)


def speak_as_wiki(catalogue: Catalogue) -> None:
    """From here on, where no request says otherwise: the language of the wiki that this process serves."""
    global _of_wiki
    _of_wiki = catalogue
