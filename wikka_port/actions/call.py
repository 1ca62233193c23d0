"""An action, and a call of it: the page with the call, and the typed arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wikka_port.files.file_html import Files
from wikka_port.markup.targets import is_set
from wikka_port.names import normalise
from wikka_port.pages import Page
from wikka_port.site import Site
from wikka_port.texts import _


@dataclass(frozen=True, slots=True)
class ActionCall:
    site: Site
    page: str  # the page that has the call
    arguments: Mapping[str, str]  # as typed, so never safe to show unescaped
    render: Callable[[Page, str], str]  # makes HTML of a page's text, to be included in this page
    files: Files = field(default_factory=dict)  # of that page
    within: tuple[str, ...] = ()  # pages that include the page with the call, outermost first
    query_parameters: Mapping[str, str] | None = (
        None  # parameters of the page's address, as typed; None: it takes none here
    )

    @property
    def named_page(self) -> str:
        """The page that the call names, else the page that has the call.  Raises InvalidName."""
        return normalise(self.arguments.get("page", "") or self.page)

    @property
    def outermost_page(self) -> str:
        """The page that the visitor reads: the outermost of the pages that include this one, or this one."""
        return self.within[0] if self.within else self.page

    def query_number(self, key: str, least: int, most: int) -> int | None:
        """Return a number from the address's parameters, or None if it is absent or invalid.

        It raises nothing, for a reader of the page did not write the call.
        """
        text = (self.query_parameters or {}).get(key, "")
        given = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else least - 1
        return given if least <= given <= most else None

    def number(self, key: str, default: int, most: int) -> int:
        """Return an argument, a number from 1 to ``most``.  Raises ValueError with a sentence for the author."""
        text = self.arguments.get(key, "").strip()
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most):
            raise ValueError(_("{given} should be a number from 1 to {most}", given=f'{key}="{text}"', most=most))
        return int(text[:9])

    def flag(self, key: str) -> bool:
        return is_set(self.arguments.get(key, ""))

    def word(self, key: str) -> str:
        """Return the argument ``key``, a word of a few allowed ones, in lower case."""
        return self.arguments.get(key, "").strip().lower()

    def label(self, default: str) -> str:
        return self.arguments.get("label", "") or default


class Action(NamedTuple):
    run: Callable[[ActionCall], str]
    attributes: tuple[str, ...] = ()  # names of arguments, which the editor completes while a call is typed
