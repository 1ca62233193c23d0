"""Users of a wiki, signed in before the load: each is a Cookie header, which his edits send.

A user's file has ``name,password`` a line (CSV, UTF-8); a first line with these two words is a heading.  The form of
the wiki's sign-in page is filled in as a browser would, with all its hidden fields, and the redirect after it is
followed: MediaWiki gives a session its token for edits with the first page that the user sees.  A wiki that shows the
form once more has refused the password.  A wiki that sets a cookie instead has signed the user in, whatever the page
after it answers: it may be missing, or not for this user.

Passwords and cookies stand in no message: reports and terminals are shown to others.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from wikibench.addresses.mapping import LoginRules, Map
from wikibench.errors import PlanError, SignInError, TargetError, TraceFileError
from wikibench.limits import FORM_BYTES, MOST_USERS, REDIRECTS

from .forms import find_form_with
from .target import Target
from .target_check import Page, fetch_page

_HEADING: Final = ["name", "password"]
_GONE: Final = ("", "deleted", '""')  # values of cookies that a server takes back, as PHP writes them


def read_users(path: Path) -> list[tuple[str, str]]:
    """Return names and passwords of a file; raises TraceFileError if it has none."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.reader(lines) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceFileError(str(path), f"users are read from name,password lines in UTF-8 ({error})") from error
    if rows and [one.strip().lower() for one in rows[0]] == _HEADING:
        del rows[0]
    if not rows or any(len(row) != 2 or not row[0] for row in rows):
        raise TraceFileError(str(path), "a users' file has one name,password a line")
    if len(rows) > MOST_USERS:
        raise TraceFileError(str(path), f"up to {MOST_USERS} users are signed in, and it has {len(rows)}")
    return [(name, password) for name, password in rows]


def users_of(target: Target, wiki: Map, file: Path | None, headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the Cookie headers of the users of --users, or of the map's own file; none if there is neither."""
    if wiki.login is None:
        if file is not None:
            raise PlanError(f"--users: the map {wiki.name} says nothing of signing in; --map names one with [login]")
        return ()
    named = file or (Path(wiki.login.users) if wiki.login.users else None)
    return () if named is None else sign_in_all(target, wiki.login, read_users(named), headers)


def sign_in_all(
    target: Target, rules: LoginRules, users: Iterable[tuple[str, str]], headers: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """Return the Cookie header of each user.  Raises SignInError for the first that the wiki refuses."""
    known = tuple(headers)
    return tuple(_sign_in(target, rules, name, password, known) for name, password in users)


def _sign_in(target: Target, rules: LoginRules, name: str, password: str, headers: tuple[tuple[str, str], ...]) -> str:
    url = target.url(rules.page)
    jar = CookieJar()
    page = fetch_page(url, most=FORM_BYTES, headers=headers, cookies=jar)
    form = find_form_with(_text(page), rules.password)
    if form is None:
        raise TargetError(url, f"no form with the field {rules.password!r} to sign in with (status {page.status})")
    action = urljoin(url, form.action) if form.action else url
    if not action.startswith(target.origin + "/"):
        raise TargetError(url, "the form to sign in with posts to another site; not sent")
    data = form.with_values({rules.name: name, rules.password: password})
    sent = (*headers, ("Origin", target.origin), ("Referer", url))
    before = _header_of(jar)
    answer = fetch_page(action, most=FORM_BYTES, headers=sent, data=data, cookies=jar)
    is_signed_in = answer.status < 400 and _header_of(jar) not in ("", before)
    at = action
    for _ in range(REDIRECTS):
        at = urljoin(at, answer.location)
        if not answer.location or not at.startswith(target.origin + "/"):
            break
        answer = fetch_page(at, most=FORM_BYTES, headers=headers, cookies=jar)
    is_refused = answer.status >= 400 and not is_signed_in
    if is_refused or find_form_with(_text(answer), rules.password) is not None:
        raise SignInError(target.url(""), name, answer.status)
    cookies = _header_of(jar)
    if not cookies:
        raise TargetError(url, f"the wiki gave user {name!r} no cookie (status {answer.status})")
    return cookies


def _header_of(jar: CookieJar) -> str:
    return merged_cookies("; ".join(f"{one.name}={one.value or ''}" for one in jar))


def _text(page: Page) -> str:
    return page.data.decode(errors="replace")


def merged_cookies(*headers: str) -> str:
    """(pure) Return the Cookie header of several; a later value of a name replaces an earlier one."""
    found: dict[str, str] = {}
    for pair in (pair for header in headers for pair in header.split("; ") if pair):
        name, _, value = pair.partition("=")
        if value in _GONE:
            found.pop(name, None)
        else:
            found[name] = value
    return "; ".join(f"{name}={value}" for name, value in found.items())
