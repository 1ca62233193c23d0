"""The steps of a person on the pages of accounts, and checks of the answers."""

from __future__ import annotations

import re
from html import unescape

from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient

PASSWORD = "correct horse battery"


def register(web: WikiClient, name: str = "Ada", password: str = PASSWORD, **fields: str) -> TestResponse:
    return web.post("/-/register", {**web.form("/-/register"), "user": name, "password": password, **fields})


def sign_in(web: WikiClient, name: str = "Ada", password: str = PASSWORD, **fields: str) -> TestResponse:
    return web.post("/-/login", {**web.form("/-/login"), "user": name, "password": password, **fields})


def who(web: WikiClient) -> str:
    """Return who is signed in, as the header of a page says it; "" for nobody."""
    found = re.search('class="me"[^>]*>([^<]*)</a>', web.get("/-/pageindex").text)
    return unescape(found[1]) if found else ""


def session_cookie(web: WikiClient) -> str:
    found = web.client.get_cookie("wikka_session")
    return found.value if found else ""


def text_in(answer: TestResponse) -> str:
    start = answer.text.index(">\n", answer.text.index('<textarea id="body"')) + 2
    return unescape(answer.text[start : answer.text.index("</textarea>", start)])


def hidden_fields(answer: TestResponse) -> dict[str, str]:
    found = re.findall('type="hidden" name="(\\w+)" value="([^"]*)"', answer.text)
    return {key: unescape(value) for key, value in found}
