"""Jobs in a browser, on a store with triggers: an administrator looks after dead letters by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support.account_pages import session_cookie
from tests.support.keyboard import press_at, tab_to, type_at
from tests.support.stored_wiki import MODULES, stored_wiki
from tests.support.wiki_client import WikiClient
from tests.support.wiki_server import WikiServer, running_wiki
from wikka_port.names import page_key
from wikka_port.pages import Wiki, clock_ms
from wikka_port.schema import PAGES

MODULE = "tests.support.trigger_functions"
TRIGGER = "wiki-broken"


@pytest.fixture
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WikiServer, Wiki]]:
    with stored_wiki(tmp_path_factory.mktemp("store"), "triggers", modules=(*MODULES, MODULE)) as wiki:
        wiki.save("Port", "A text.", author="Olga", base=0)
        with running_wiki(wiki) as server:
            yield server, wiki


def settle(wiki: Wiki) -> None:
    wiki.store.run(lambda connection: connection.triggers.wait(TRIGGER, timeout_ms=20_000))


def give_up_a_change(wiki: Wiki) -> None:
    def work(connection: Any) -> None:
        connection.triggers.add(TRIGGER, PAGES, f"{MODULE}:refuse", [b"note"], attempts=1)
        connection.table(PAGES).put(page_key("Port"), {b"note:order": b"raise"})

    wiki.store.run(work)
    settle(wiki)


def test_a_dead_letter_is_delivered_again_thrown_away_and_found_in_the_audit(
    browser: Any, stored: tuple[WikiServer, Wiki]
) -> None:
    server, wiki = stored
    give_up_a_change(wiki)
    web = WikiClient(wiki)
    web.now = clock_ms() / 1_000
    session = session_cookie(web.signed_in("Root", admin=True))
    with quiet_pages(browser, server, 400) as open_page:
        page = open_page(java_script_enabled=False)
        page.context.add_cookies([{"name": "wikka_session", "value": session, "url": server.url}])
        page.goto("/-/administration")
        press_at(page, "main a[href='/-/jobs']")
        letter = "main .entries li:has(a[href='/Port'])"
        page.wait_for_selector(letter)
        with page.expect_navigation():  # the answer leads back to the same address
            press_at(page, f"{letter} button[name=retry]")
        settle(wiki)
        assert len(wiki.maintenance.letters()) == 1, "its cause is not gone"
        page.goto("/-/jobs")
        with page.expect_navigation():
            press_at(page, f"{letter} button[name=discard]")
        page.wait_for_selector("main [role=alert]")
        assert len(wiki.maintenance.letters()) == 1, "a change is not thrown away by one key"
        press_at(page, f"{letter} input[name=sure]", "Space")
        with page.expect_navigation():
            press_at(page, f"{letter} button[name=discard]")
        page.wait_for_selector("main dt:has-text('wiki-broken')")
        assert page.locator(letter).count() == 0
        assert wiki.maintenance.letters() == []
        page.goto("/-/administration")
        press_at(page, "main a[href='/-/audit']")
        page.wait_for_selector("main select[name=what]")
        type_at(page, "main select[name=what]", "dead letters t")
        tab_to(page, "main form.fields button")
        page.keyboard.press("Enter")
        page.wait_for_url("**what=dead+letters+discarded**")
        assert TRIGGER in page.inner_text("main .entries")
        assert page.locator("main .entries li").count() == 1
