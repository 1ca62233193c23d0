"""Texts that the wiki shows to people, in their language.

The source has each text in English.  ``_`` returns its translation from the language's file, or the English text if
there is none; ``N_`` marks a constant that ``_`` translates later.  The language is that of the request (``speak``).
``_w`` uses the wiki's language, for texts that are stored or that others read, such as the note of an edit.  Texts of
templates are translated when a template is compiled, once for each language (``texts.folding``).

    _("A password has at least {count} characters.", count=10)
    _n("{n} page", "{n} pages", 3)

Logs, output of commands, and texts for programs stay English.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final, Self

from wikka_port.texts.catalogue import ENGLISH, Catalogue

_of_request: Final[ContextVar[Catalogue | None]] = ContextVar("of_request", default=None)
_of_wiki = ENGLISH  # of the process: one wiki


def _(text: str, **values: object) -> str:
    """Translate ``text`` into the request's language, and put ``values`` in the places of their names in braces."""
    catalogue = spoken()
    said = catalogue.gettext(text)
    return _with(catalogue, said, values) if values else said


def _n(one: str, many: str, n: int, **values: object) -> str:
    """Translate by the language's rule of plurals for ``n``, which is also a value of the text."""
    catalogue = spoken()
    return _with(catalogue, catalogue.ngettext(one, many, n), {"n": n, **values})


def _w(text: str, **values: object) -> str:
    """Translate ``text`` as ``_`` does, into the wiki's language."""
    said = _of_wiki.gettext(text)
    return _with(_of_wiki, said, values) if values else said


def figure(value: float, form: str = ",") -> str:
    """Format a number as the request's language writes it."""
    return spoken().figure(value, form)


class _Number(float):
    """A number in a text, formatted as the language writes numbers: ``{n:,}``."""

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
    """Return ``text`` unchanged; it marks a constant for ``texts.files``, and ``_`` translates it where it is used."""
    return text


def spoken() -> Catalogue:
    return _of_request.get() or _of_wiki


def speak(catalogue: Catalogue | None) -> None:
    """Set the language of the request that this thread answers; None ends the request."""
    _of_request.set(catalogue)


def speak_as_wiki(catalogue: Catalogue) -> None:
    """Set the language of the wiki that this process serves, used outside of requests."""
    global _of_wiki
    _of_wiki = catalogue
