"""(pure) The forms and links of a page, found in the HTML itself: all that a visitor can fill, send and follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Final

_TYPED: Final = frozenset({"text", "search", "email", "password", "number", "url", "textarea"})
_CHOSEN: Final = frozenset({"checkbox", "radio", "select"})


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str  # the type of an input; "textarea", "select", "button"
    value: str  # that it is sent with; of a button: if it is pressed
    is_set: bool = True  # a box that is not checked is not sent

    @property
    def is_typed(self) -> bool:
        return self.kind in _TYPED


@dataclass(frozen=True, slots=True)
class Form:
    action: str  # as in the page
    method: str  # "get" or "post"
    fields: tuple[Field, ...]

    @property
    def path(self) -> str:
        return self.action.partition("?")[0].partition("#")[0]

    def names(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields)

    def sent(self, button: Field | None = None) -> dict[str, str]:
        """Return the fields that a browser sends if nothing is changed and ``button`` is pressed."""
        sent = {field.name: field.value for field in self.fields if field.kind != "button" and field.is_set}
        return {**sent, button.name: button.value} if button and button.name else sent

    def buttons(self) -> list[Field]:
        """Return the buttons that send the form."""
        found = [field for field in self.fields if field.kind == "button" and field.name]
        return found or [Field("", "button", "")]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self._open: Form | None = None
        self._text: Field | None = None
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("a", "link") and given.get("href"):
            self.links.append(given["href"])
        if tag == "form":
            self._open = Form(given.get("action", ""), given.get("method", "get").lower(), ())
        elif tag in ("input", "button", "textarea", "select", "option"):
            self._control(tag, given)

    def _control(self, tag: str, given: dict[str, str]) -> None:
        name, value = given.get("name", ""), given.get("value", "")
        if tag == "option":
            if self._select:
                self._add(Field(self._select, "select", value, "selected" in given))
        elif tag == "select":
            self._select = name
        elif tag == "textarea":
            self._text = Field(name, "textarea", "")
        elif tag == "button" or given.get("type") in ("submit", "image"):
            self._add(Field(name, "button", value))
        elif name:
            kind = given.get("type", "text")
            self._add(Field(name, kind, value or ("on" if kind in _CHOSEN else ""), _is_set(given)))

    def _add(self, field: Field) -> None:
        if self._open is not None and (field.name or field.kind == "button"):
            self._open = replace(self._open, fields=(*self._open.fields, field))

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text = replace(self._text, value=self._text.value + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._text is not None:
            self._add(replace(self._text, value=self._text.value.removeprefix("\n")))
            self._text = None
        elif tag == "select":
            self._select = ""
        elif tag == "form" and self._open is not None:
            self.forms.append(self._open)
            self._open = None


def _is_set(given: dict[str, str]) -> bool:
    return given.get("type", "text") not in ("checkbox", "radio") or "checked" in given


def read(html: str) -> tuple[list[Form], list[str]]:
    """Return the page's forms, and the addresses to which it links."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.forms, reader.links
