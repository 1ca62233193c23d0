"""Promises that hold on every route: redirects stay within, ``Host`` is shown nowhere, a store that is away lets nobody
in, and no secret is in a log.

The routes, their parameters and fields come from the application (``tests.support.wiki_scene``, ``noting_request``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from itertools import product
from urllib.parse import urlsplit

import pytest

from tests.support.account_pages import PASSWORD, session_cookie
from tests.support.noting_request import Noted, noting
from tests.support.wiki_scene import ROLES, SECRET_TEXT, Scene, Sent, filled, posts, walk
from wikka_port.config import MailConfig
from wikka_port.handlers import HANDLERS
from wikka_port.urls import SITE_HANDLERS, page_path, site_path

ELSEWHERE = [
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "/\t/evil.example",
    "/\n/evil.example",
    "%2f%2fevil.example",
    "/%09/evil.example",
    "//evil.example@localhost/",
    "http://localhost@evil.example/",
    "/x\r\nLocation: https://evil.example/",
    "data:text/html,x",
    "。。evil.example",
]
EVIL_HOST = "evil.example"


@pytest.fixture(scope="module")
def noted() -> Iterator[tuple[Scene, Noted, Mapping[str, list[Sent]]]]:
    """A walk of all roles, with what was asked for."""
    with noting() as found:
        scene = Scene()
        sent = {role: posts(scene, role) for role in ROLES}
        for role in ROLES:
            for one in sent[role]:
                scene.browsers[role].client.post(one.form.action or one.page, data={**one.fields(), "csrf": "0.0"})
        yield scene, found, sent


def path_of(handler: str) -> str:
    return site_path(handler) if handler in SITE_HANDLERS else page_path("HomePage", handler)


def is_within(location: str) -> bool:
    parts = urlsplit(location)
    return not parts.scheme and not parts.netloc and re.match(r"/(?![/\\])[!-~]*\Z", location) is not None


def test_what_handlers_ask_for_is_noted(noted: tuple[Scene, Noted, Mapping[str, list[Sent]]]) -> None:
    assert {("login", "form", "next"), ("login", "args", "next"), ("show", "args", "revision")} <= noted[1]


def test_redirects_lead_only_within(noted: tuple[Scene, Noted, Mapping[str, list[Sent]]]) -> None:
    scene, found, _ = noted
    arguments = sorted({(handler, key) for handler, source, key in found if source == "args" and handler in HANDLERS})
    led = 0
    for (handler, key), address in product(arguments, ELSEWHERE):
        answer = scene.web.get(path_of(handler), query_string={key: address})
        location = answer.headers.get("Location")
        if location is not None:
            led += 1
            assert is_within(location), (handler, key, address, location)
    assert led >= len(ELSEWHERE), "some lead on"


@pytest.mark.parametrize("role", ROLES)
def test_what_is_posted_leads_only_within(noted: tuple[Scene, Noted, Mapping[str, list[Sent]]], role: str) -> None:
    _, found, sent = noted
    for one in sent[role]:
        scene = Scene()
        if any(word in one.page for word in ("token=", "administrator=", "invitation=")):
            continue  # a link of another wiki
        keys = sorted(key for handler, source, key in found if handler == one.handler and source == "form")
        for number, key in enumerate(key for key in keys if key != "csrf"):
            fields = filled(scene.browsers[role], one)
            address = ELSEWHERE[number % len(ELSEWHERE)] if key != "next" else ELSEWHERE[2]
            answer = scene.browsers[role].client.post(one.form.action or one.page, data={**fields, key: address})
            location = answer.headers.get("Location")
            assert location is None or is_within(location), (one.label, key, address, location)


@pytest.mark.parametrize("role", ROLES)
def test_the_host_of_a_request_is_in_no_page_no_feed_and_no_address(role: str) -> None:
    scene = Scene(host="0.0.0.0", public_url="https://wiki.example")
    hostile = {"Host": EVIL_HOST, "X-Forwarded-Host": EVIL_HOST, "Forwarded": f"host={EVIL_HOST}"}
    addresses = [path for path, _ in walk(scene, role)]
    feeds = [site_path("recentchanges.xml"), page_path("HomePage", "revisions.xml")]
    feeds += [f"{feed}?format=rss" for feed in feeds]
    browser = scene.browsers[role]
    for path in [*addresses, *feeds, "/robots.txt", "/api/titles", "/A/B"]:
        answer = browser.get(path, headers=hostile)
        assert EVIL_HOST not in answer.text, path
        assert EVIL_HOST not in str(answer.headers), path
    for feed in feeds:
        text = browser.get(feed, headers=hostile).text
        assert "https://wiki.example/" in text
        assert "http://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)


def test_a_feed_without_a_public_address_is_of_the_address_that_is_listened_on() -> None:
    scene = Scene(port=8123)
    text = scene.web.get(site_path("recentchanges.xml"), headers={"Host": "localhost:9"}).text
    assert "http://127.0.0.1:8123/HomePage?revision=2" in text
    assert "localhost" not in text


@pytest.mark.parametrize("role", ROLES)
def test_a_store_that_is_away_lets_nobody_in_and_shows_nothing(role: str) -> None:
    scene = Scene()
    sent = [(one, filled(scene.browsers[role], one)) for one in posts(scene, role)]
    addresses = [path for path, _ in walk(scene, role)]
    before = scene.state()
    scene.wiki.away = True
    browser = scene.browsers[role]
    for path in addresses:
        answer = browser.get(path)
        if answer.status_code == 405:
            continue  # what takes only a POST needs no store to say so
        # who is no administrator is told so without a look at the store, as is who has half a link
        allowed = (200, 302, 303, 403, 503, 404) if path == "/-/unsubscribe" else (200, 302, 303, 403, 503)
        assert answer.status_code in allowed, path
        assert SECRET_TEXT not in answer.text, path
        assert 'class="me"' not in answer.text, path
        assert role == "anonymous" or answer.status_code == 503, path
    for one, fields in sent:
        answer = browser.client.post(one.form.action or one.page, data=fields)
        # a sign-out of who is not signed in, a preview, and mail that is sent later need no store to be answered
        assert answer.status_code in (400, 403, 503) or one.handler in ("logout", "edit", "preview", "reset"), one.label
        assert not re.search("wikka_session=[^;]", "".join(answer.headers.getlist("Set-Cookie"))), one.label
        assert SECRET_TEXT not in answer.text, one.label
    scene.wiki.away = False
    assert scene.state() == before


def test_no_secret_is_in_a_log(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """Everything is sent by everybody, with the store there, failing, and a mail server that refuses."""
    caplog.set_level(logging.DEBUG)
    mail = MailConfig("127.0.0.1", 1, "none", "user", "mailgeheim")  # nobody listens there
    secrets = {"mailgeheim", PASSWORD, "typedgeheim", "s" * 32}
    for role in ("anonymous", "administrator"):
        scene = Scene(mail=mail, public_url="https://wiki.example")
        for one in posts(scene, role):
            browser = scene.browsers[role]
            fields = filled(browser, one)
            secrets |= {fields["csrf"], session_cookie(browser) or PASSWORD}
            secrets |= set(re.findall("(?:token|invitation|administrator)=([^&]+)", one.page))
            for away in (True, False):
                scene.wiki.away = away
                browser.client.post(one.form.action or one.page, data={**fields, "password": "typedgeheim"})
                browser.client.post(one.form.action or one.page, data=fields)
            for broken in (b"a" * 10, b"\xff=" + fields["csrf"].encode()):
                browser.client.post(one.page, data=broken, content_type="multipart/form-data; boundary=x")
            scene.wiki.away = False
    said = caplog.text + "".join(capfd.readouterr())
    assert said, "it is logged at all"
    assert [secret for secret in secrets - {""} if secret in said] == []
