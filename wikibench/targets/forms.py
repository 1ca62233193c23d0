"""Edit forms: the fields that a browser would send back for the form around a text area, and what a save led to (pure).

A wiki's form has the fields that the wiki needs to accept the save: a CSRF token, the revision from which the edit
started, a honeypot that must stay empty.  WikiBench sends all of them back as a browser would: every named field of the
form with its original value, and the name of the save button.  Only the body is new.

Names of the text area and of the button come from a map (``mapping.FormRules``).  Knows nothing of connections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from typing import Final
from urllib.parse import parse_qsl, urlencode

from wikibench.addresses.mapping import FormRules, LoginRules
from wikibench.outcome import FAILED, Kind, Outcome, classify

_FORM: Final = re.compile(r"<form\b.*?</form\s*>", re.IGNORECASE | re.DOTALL)
_NOT_SENT: Final = {"reset", "button", "image", "file"}
_NO_SAVE: Final = re.compile(r"preview|cancel|diff|changes|delete", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EditForm:
    """A parsed form; ``action`` as written, empty for "the address of the page itself"."""

    action: str
    fields: tuple[tuple[str, str], ...]  # without the body, in page order
    body: str = ""  # the text that is there, as it came
    text: str = "body"  # the name of the body's field
    is_read_only: bool = False

    def filled(self, body: str) -> bytes:
        """Return the form as application/x-www-form-urlencoded; line ends of the body become CR LF, as in a browser."""
        lines = body.replace("\r\n", "\n").replace("\n", "\r\n")
        return urlencode([*self.fields, (self.text, lines)]).encode("ascii")

    def with_values(self, values: Mapping[str, str]) -> bytes:
        """Return the form as application/x-www-form-urlencoded, with ``values`` in place of its own."""
        fields = [(name, value) for name, value in self.fields if name not in values]
        return urlencode([*fields, *values.items()]).encode("ascii")


def find_edit_form(page: str, rules: FormRules = FormRules()) -> EditForm | None:  # noqa: B008  it is constant
    """Return the first form of ``page`` that contains the body's textarea; None if there is none."""
    return _find_form(page, _field_of("textarea", rules.text), rules)


def find_form_with(page: str, field: str) -> EditForm | None:
    """Return the first form of ``page`` that contains the input ``field``; None if there is none."""
    return _find_form(page, _field_of("input", field), FormRules())


def _find_form(page: str, wanted: re.Pattern[str], rules: FormRules) -> EditForm | None:
    for match in _FORM.finditer(page):
        if wanted.search(match.group()):
            reader = _FormReader(rules.text)
            reader.feed(match.group())
            reader.close()
            return reader.form(rules.save)
    return None


@lru_cache(maxsize=64)
def _field_of(tag: str, name: str) -> re.Pattern[str]:
    return re.compile(rf"<{tag}\b[^>]*\bname\s*=\s*[\"']?{re.escape(name)}(?![\w\[-])", re.IGNORECASE)


def judge_save(
    status: int, location: str, body: str, rules: FormRules, login: LoginRules | None = None
) -> tuple[Outcome, str]:
    """Return what the answer to a save says, and why it says it: saved, a conflict or a failure."""
    why = f"status {status}"
    if status in rules.conflict:
        return Outcome.CONFLICT, why
    outcome = classify(Kind.EDIT_SAVE, status)
    if status in rules.saved:
        if login is not None and leads_to(location, login.page):
            return Outcome.BROKEN, f"{why} to the page where one signs in: --users gives names and passwords"
        if rules.review and leads_to(location, rules.review):
            return Outcome.BROKEN, f"{why}: the edit waits for a review; 'wikka antispam set judging=no' ends that"
        return outcome, why
    if rules.conflict_text and rules.conflict_text in body:
        return Outcome.CONFLICT, f"{why}, a page that says so"
    if outcome in FAILED:
        return outcome, why
    wanted = "a redirect" if all(300 <= one < 400 for one in rules.saved) else " or ".join(map(str, rules.saved))
    return Outcome.BROKEN, f"{why} where a save is answered by {wanted}"


def leads_to(location: str, page: str) -> bool:
    """Return whether a redirect leads to ``page``, a path and query of the map, whatever other parameters it has."""
    path, _, query = page.partition("?")
    to_path, _, to_query = location.partition("?")
    if not to_path.endswith(path):
        return False
    return set(parse_qsl(query)) <= set(parse_qsl(to_query.partition("#")[0]))


class _FormReader(HTMLParser):
    """A parser that collects the fields of one form."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self._text_field = text
        self._is_read_only = False
        self._action = ""
        self._fields: list[tuple[str, str]] = []
        self._buttons: list[tuple[str, str]] = []
        self._area: str | None = None
        self._body = ""
        self._text: list[str] = []
        self._select: str | None = None

    def form(self, save: str) -> EditForm:
        """Return the form with the button ``save``, or else with the first one that seems to save."""
        named = [button for button in self._buttons if button[0] == save]
        saving = [button for button in named or self._buttons if not _NO_SAVE.search(" ".join(button))]
        pressed = (saving or named)[:1]
        fields = tuple(self._fields + pressed)
        return EditForm(self._action, fields, self._body, self._text_field, self._is_read_only)

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
            self._is_read_only |= name == self._text_field and "readonly" in given
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
            if self._area == self._text_field:
                self._body = "".join(self._text)
            elif self._area:
                self._fields.append((self._area, "".join(self._text)))
            self._area = None
        elif tag == "select":
            self._select = None
