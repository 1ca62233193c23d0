"""Renaming, deleting, bringing back and going back by forms, on a store; accounts by the links of mails."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support.deep import seeds
from tests.support.smtp_server import SmtpServer
from tests.support.store_thread import StoreThread
from tests.support.wiki_server import WikiServer, running_wiki
from wikka_port.config import MailConfig
from wikka_port.pages import Wiki

PASSWORD = "correct horse battery"
SUBMIT = "main form button.primary"
LINKING = seeds("pages with a link to a page that is renamed in a browser", deep=500, short=12)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WikiServer, Wiki]]:
    folder: Path = tmp_path_factory.mktemp("store")
    with StoreThread(folder) as store:
        wiki: Any = Wiki("127.0.0.1", store.port, indexes="application")
        wiki.prepare()
        with running_wiki(wiki) as server:
            yield server, wiki
        for thread in threading.enumerate():
            if thread.name.startswith("job-"):
                thread.join(60)
        wiki.store.close()


def signed_in(open_page: Any, name: str) -> Any:
    page = open_page()
    page.goto("/-/register")
    page.fill("main [name=user]", name)
    page.fill("main [name=password]", PASSWORD)
    page.click("main button[type=submit]")
    page.wait_for_selector(".me")
    return page


def test_a_rename_shows_its_progress_and_leads_the_links(browser: Any, stored: tuple[WikiServer, Wiki]) -> None:
    server, wiki = stored
    wiki.save("Old name", "======Old======", author="Mia", owner="Mia", base=0)
    for number in range(LINKING):
        wiki.save(f"Linking {number}", "See [[Old name]].", author="Ann", base=0)
    with quiet_pages(browser, server, 404) as open_page:
        page = signed_in(open_page, "Mia")
        page.goto("/Old_name")
        page.click(".provenance >> text=Rename")
        page.fill("main [name=new]", "New name")
        page.click(SUBMIT)
        page.wait_for_selector(f"main [role=status]:has-text('{LINKING} of {LINKING}; ended')")
        assert page.locator("main li:has-text('revision 2')").count() == LINKING
        page.click("text=To the page")
        page.wait_for_url("**/New_name")
        page.goto("/Old_name")
        assert "Redirected from" in page.inner_text("main .note")
        page.goto("/Linking_3")
        assert page.get_attribute(".content a", "href") == "/New_name"


def test_a_page_is_deleted_and_brought_back_and_goes_back(browser: Any, stored: tuple[WikiServer, Wiki]) -> None:
    server, wiki = stored
    wiki.save("Fleeting", "the first text", author="Zoe", owner="Zoe", base=0)
    wiki.save("Fleeting", "the second text", author="Ann", base=1)
    with quiet_pages(browser, server, 404) as open_page:
        page = signed_in(open_page, "Zoe")
        page.goto("/Fleeting")
        page.click(".provenance >> text=Delete")
        page.fill("main [name=reason]", "too short")
        page.click(SUBMIT)
        page.wait_for_url("**/Fleeting/undelete")
        assert page.inner_text("main .change-note") == "too short"
        assert open_page().goto("/Fleeting").status == 404
        page.click(SUBMIT)
        page.wait_for_url("**/Fleeting")
        assert page.inner_text(".content") == "the second text"
        page.goto("/Fleeting?revision=1")
        page.click("main .banner >> text=Go back to this one")
        page.click(SUBMIT)
        page.wait_for_url("**/Fleeting")
        assert page.inner_text(".content") == "the first text"
        assert page.inner_text(".provenance .author >> nth=0") == "Zoe"


def test_an_account_is_confirmed_and_its_password_set_anew_by_mail(browser: Any) -> None:
    """Without script, as the reader of a mail may have it."""
    with SmtpServer() as smtp:
        mail = MailConfig("127.0.0.1", smtp.port, tls="none", sender="wiki@wiki.example")
        with (
            running_wiki(mail=mail, public_url="http://wiki.example") as server,
            quiet_pages(browser, server, 403, 404) as open_page,
        ):
            page = open_page(java_script_enabled=False)
            page.goto("/-/register")
            page.fill("main [name=user]", "Ada")
            page.fill("main [name=email]", "ada@mail.example")
            page.fill("main [name=password]", PASSWORD)
            page.click("main button[type=submit]")
            page.goto(_linked(smtp))
            page.click(SUBMIT)
            assert "Your mail address is confirmed." in page.inner_text("main")
            page.goto("/-/reset")
            page.fill("main [name=user]", "ada@mail.example")
            page.click(SUBMIT)
            link = _linked(smtp)
            page.goto(link)
            page.fill("main [name=password]", "another horse battery")
            page.click(SUBMIT)
            page.fill("main [name=user]", "Ada")
            page.fill("main [name=password]", "another horse battery")
            page.click("main form button[type=submit]")
            assert page.inner_text(".me") == "Ada"
            assert page.goto(link).status == 403, "it is good once"
            assert "password" in smtp.next_mail().get_content(), "and its owner is told"


def _linked(smtp: SmtpServer) -> str:
    """The path of the link in the next mail."""
    found = re.search(r"http://wiki\.example(/-/\S+token=\S+)", smtp.next_mail().get_content())
    assert found is not None
    return found[1]
