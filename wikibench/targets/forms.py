"""Edit forms: the fields that a browser would send back for the form around ``textarea name="body"`` (pure).

A wiki's form has the fields that the wiki needs to accept the save: a CSRF token, the revision from which the edit
started, a honeypot that must stay empty.  WikiBench sends all of them back as a browser would: every named field of the
form with its original value, and the name of the save button.  Only the body is new.

Knows nothing of any one wiki's field names except ``body``, and nothing of HTTP.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlencode

BODY: Final = "body"
_FORM: Final = re.compile(r"<form\b.*?</form\s*>", re.IGNORECASE | re.DOTALL)
_HAS_BODY: Final = re.compile(r"<textarea\b[^>]*\bname\s*=\s*[\"']?" + BODY + r"\b", re.IGNORECASE)
_NOT_SENT: Final = {"reset", "button", "image", "file"}
_NO_SAVE: Final = re.compile(r"preview|cancel|diff|changes|delete", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EditForm:
    """A parsed form; ``action`` as written, empty for "the address of the page itself"."""

    action: str
    fields: tuple[tuple[str, str], ...]  # without the body, in page order
    body: str = ""  # the text that is there, as it came

    def filled(self, body: str) -> bytes:
        """Return the form as application/x-www-form-urlencoded; line ends of the body become CR LF, as in a browser."""
        lines = body.replace("\r\n", "\n").replace("\n", "\r\n")
        return urlencode([*self.fields, (BODY, lines)]).encode("ascii")


def find_edit_form(page: str) -> EditForm | None:
    """Return the first form of ``page`` that contains the body's textarea; None if there is none."""
    for match in _FORM.finditer(page):
        if _HAS_BODY.search(match.group()):
            reader = _FormReader()
            reader.feed(match.group())
            reader.close()
            return reader.form()
    return None


class _FormReader(HTMLParser):
    """A parser that collects the fields of one form."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._action = ""
        self._fields: list[tuple[str, str]] = []
        self._buttons: list[tuple[str, str]] = []
        self._area: str | None = None
        self._body = ""
        self._text: list[str] = []
        self._select: str | None = None

    def form(self) -> EditForm:
        save = next((b for b in self._buttons if not _NO_SAVE.search(b[0] + " " + b[1])), None)
        return EditForm(self._action, tuple(self._fields + ([save] if save else [])), self._body)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value if value is not None else "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "form":
            self._action = given.get("action", "")
        elif "disabled" in given:
            return
        elif tag == "input" and name:
            self._input(name, given)
        elif tag == "button" and name and given.get("type", "submit").lower() == "submit":
            self._buttons.append((name, given.get("value", "")))
        elif tag == "textarea":
            self._area, self._text = name, []
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in given:
            self._fields.append((self._select, given.get("value", "")))

    def _input(self, name: str, given: dict[str, str]) -> None:
        kind = given.get("type", "text").lower()
        if kind == "submit":
            self._buttons.append((name, given.get("value", "")))
        elif kind in ("checkbox", "radio"):
            if "checked" in given:
                self._fields.append((name, given.get("value", "on")))
        elif kind not in _NOT_SENT:
            self._fields.append((name, given.get("value", "")))

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            if self._area == BODY:
                self._body = "".join(self._text)
            elif self._area:
                self._fields.append((self._area, "".join(self._text)))
            self._area = None
        elif tag == "select":
            self._select = None
