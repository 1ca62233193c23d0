"""Renaming, deleting, bringing back and going back by forms, on a store; accounts by the links of mails.

Work on many pages, which administrators do without a script and by the keyboard alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support.account_pages import session_cookie
from tests.support.deep import seeds
from tests.support.keyboard import press_at, type_at
from tests.support.smtp_server import SmtpServer
from tests.support.stored_wiki import stored_wiki, wait_for_jobs
from tests.support.wiki_client import WikiClient
from tests.support.wiki_server import WikiServer, running_wiki
from wikka_port.accounts.directory import Directory
from wikka_port.config import MailConfig
from wikka_port.handlers import moves
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.rules import Privilege

PASSWORD = "correct horse battery"
SUBMIT = "main form button.primary"
LINKING = seeds("pages with a link to a page that is renamed in a browser", deep=500, short=12)
WRITE = Privilege.WRITE


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WikiServer, Wiki]]:
    with stored_wiki(tmp_path_factory.mktemp("store")) as wiki:
        with running_wiki(wiki) as server:
            yield server, wiki
        wait_for_jobs()


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


@pytest.fixture(scope="module")
def session(stored: tuple[WikiServer, Wiki]) -> str:
    """The session of an administrator."""
    web = WikiClient(stored[1])
    web.now = time.time()
    return session_cookie(web.signed_in("Root", admin=True))


@pytest.fixture
def root(browser: Any, stored: tuple[WikiServer, Wiki], session: str) -> Iterator[Any]:
    """A page of an administrator, in whose browser no script runs."""
    server, _wiki = stored
    with quiet_pages(browser, server) as open_page:
        page = open_page(java_script_enabled=False)
        page.context.add_cookies([{"name": "wikka_session", "value": session, "url": server.url}])
        yield page


def owner_and_lists(wiki: Wiki, name: str) -> tuple[str, dict[Privilege, str]]:
    page = wiki.page(name)
    assert page is not None
    return page.owner, dict(page.rights.lists)


def ended(root: Any, count: int) -> None:
    """Wait for the work, which a page without a script shows once it is shown anew."""
    root.wait_for_url("**job=**")
    wait_for_jobs()
    root.reload()
    root.wait_for_selector(f"main [role=status]:has-text('{count} of {count}; ended')")


def test_pages_are_selected_and_get_an_owner_and_a_list_by_the_keyboard(
    root: Any, stored: tuple[WikiServer, Wiki]
) -> None:
    """And what was changed is taken back."""
    _server, wiki = stored
    Directory(wiki.rows, clock_ms).make("Nina", status="active")
    for name in ("Harbour/One", "Harbour/Two", "Harbour/Three", "Elsewhere"):
        wiki.save(name, "text", author="Ann", base=0)
    root.goto("/-/administration")
    press_at(root, "main a[href='/-/pages']")
    root.wait_for_url("**/-/pages")
    type_at(root, "main input[name=prefix]", "harbour/")
    type_at(root, "main select[name=lists]", "without")
    press_at(root, "main form[role=search] button")
    root.wait_for_url("**prefix=harbour**lists=none**")
    assert root.locator("main .entries li").count() == 3
    press_at(root, "main input[value='Harbour/One']", "Space")
    press_at(root, "main input[value='Harbour/Two']", "Space")
    type_at(root, "main input[name=new_owner]", "Nina")
    press_at(root, "main summary")
    type_at(root, "main textarea[name=write]", "Nina")
    with root.expect_navigation():
        press_at(root, "main button[value=rights]")
    root.wait_for_selector("main h2:has-text('2 pages would be changed')")
    assert "Nina may. Nobody else may." in root.inner_text("main dl")
    type_at(root, "main input[name=reason]", "hers")
    press_at(root, "main button[name=sure]")
    ended(root, 2)
    assert owner_and_lists(wiki, "Harbour/One") == owner_and_lists(wiki, "Harbour/Two") == ("Nina", {WRITE: "Nina"})
    assert owner_and_lists(wiki, "Harbour/Three") == owner_and_lists(wiki, "Elsewhere") == ("", {})
    press_at(root, "main button[name=undo]")
    root.wait_for_selector("main p:has-text('Taken back, asked for by Root')")
    ended(root, 2)
    assert owner_and_lists(wiki, "Harbour/One") == owner_and_lists(wiki, "Harbour/Two") == ("", {})


def test_many_pages_are_deleted_as_a_job_that_is_stopped_goes_on_and_is_undone_by_the_keyboard(
    root: Any, stored: tuple[WikiServer, Wiki], monkeypatch: pytest.MonkeyPatch
) -> None:
    _server, wiki = stored
    names = [f"Flotsam {number}" for number in range(3)]
    for name in names:
        wiki.save(name, "text", author="Ann", base=0)
    root.goto("/-/pages?prefix=Flotsam")
    press_at(root, "main input[name=all]", "Space")
    press_at(root, "main button[value=delete]")
    root.wait_for_selector("main h2:has-text('3 pages would be deleted')")
    with monkeypatch.context() as held:
        held.setattr(moves, "start", lambda wiki, job: None)
        press_at(root, "main button[name=sure]")
        root.wait_for_selector("main [role=status]:has-text('0 of 3; under way')")
        with root.expect_navigation():
            press_at(root, "main .actions a[href*='job=']")
        press_at(root, "main button[name=stop]")
        root.wait_for_selector("main [role=status]:has-text('0 of 3; stopped')")
        root.goto("/-/jobs")
        press_at(root, "main a[href='/-/moves']")
        root.wait_for_url("**/-/moves")
        press_at(root, "main a[href*='job=']")
        root.wait_for_selector("main [role=status]:has-text('0 of 3; stopped')")
    press_at(root, "main button[name=go]")
    root.wait_for_selector("main [role=status]:not(:has-text('stopped'))")
    ended(root, 3)
    assert [wiki.page(name) for name in names] == [None, None, None]
    press_at(root, "main button[name=undo]")
    root.wait_for_selector("main p:has-text('Taken back, asked for by Root')")
    ended(root, 3)
    assert all(wiki.page(name) is not None for name in names)


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
            with page.expect_navigation():
                page.click("main button[type=submit]")
            page.goto(_linked(smtp))
            with page.expect_navigation():
                page.click(SUBMIT)
            assert "Your mail address is confirmed." in page.inner_text("main")
            page.goto("/-/reset")
            page.fill("main [name=user]", "ada@mail.example")
            with page.expect_navigation():
                page.click(SUBMIT)
            link = _linked(smtp)
            page.goto(link)
            page.fill("main [name=password]", "another horse battery")
            with page.expect_navigation():
                page.click(SUBMIT)
            page.fill("main [name=user]", "Ada")
            page.fill("main [name=password]", "another horse battery")
            with page.expect_navigation():
                page.click("main form button[type=submit]")
            assert page.inner_text(".me") == "Ada"
            assert page.goto(link).status == 403, "it is good once"
            assert "password" in smtp.next_mail().get_content(), "and its owner is told"


def _linked(smtp: SmtpServer) -> str:
    """The path of the link in the next mail."""
    found = re.search(r"http://wiki\.example(/-/\S+token=\S+)", smtp.next_mail().get_content())
    assert found is not None
    return found[1]
