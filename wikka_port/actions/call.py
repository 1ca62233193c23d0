"""An action, and a call of it: where it stands and what was typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wikka_port.markup.targets import is_set
from wikka_port.names import normalise
from wikka_port.pages import Page
from wikka_port.site import Site
from wikka_port.texts import _


@dataclass(frozen=True, slots=True)
class ActionCall:
    site: Site
    page: str  # the page that it stands on
    arguments: Mapping[str, str]  # as typed: never safe to show unescaped
    render: Callable[[Page, str], str]  # a text of that page as HTML, within this one
    within: tuple[str, ...] = ()  # pages that include the page it stands on, outermost first
    query_parameters: Mapping[str, str] | None = (
        None  # parameters of the page's address, as typed; None: it takes none here
    )

    @property
    def named_page(self) -> str:
        """The page that the call names, or the one that it stands on.  Raises InvalidName."""
        return normalise(self.arguments.get("page", "") or self.page)

    @property
    def outermost_page(self) -> str:
        """The page that is read: the outermost of those that include this one."""
        return self.within[0] if self.within else self.page

    def query_number(self, key: str, least: int, most: int) -> int | None:
        """A parameter of the address; None if it is absent or nonsense, for readers did not write the page."""
        text = (self.query_parameters or {}).get(key, "")
        given = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else least - 1
        return given if least <= given <= most else None

    def number(self, key: str, default: int, most: int) -> int:
        """Return a number from 1 to ``most``.  Raises ValueError with a sentence for the author."""
        text = self.arguments.get(key, "").strip()
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most):
            raise ValueError(_("{given} should be a number from 1 to {most}", given=f'{key}="{text}"', most=most))
        return int(text[:9])

    def flag(self, key: str) -> bool:
        return is_set(self.arguments.get(key, ""))

    def word(self, key: str) -> str:
        """Return the word that an argument chooses by, in lower case."""
        return self.arguments.get(key, "").strip().lower()

    def label(self, default: str) -> str:
        return self.arguments.get("label", "") or default


class Action(NamedTuple):
    run: Callable[[ActionCall], str]
    attributes: tuple[str, ...] = ()  # by name, for the completion of a call while it is typed
