"""Work under way in a browser: it is shown in its place, stopped by the keyboard alone, and never reloads itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support import axe
from tests.support.account_pages import session_cookie
from tests.support.keyboard import tab_to
from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_client import WikiClient
from tests.support.wiki_server import WikiServer, running_wiki
from wikka_port.moving.jobs import SUBPAGES, Item, Jobs, Progress, new_job
from wikka_port.moving.journal import ITEM, MOVES
from wikka_port.names import page_key
from wikka_port.pages import clock_ms

NAMES = ("One", "Three", "Two")
STOP = "button[name=stop]"
SAID = "main [role=status]"
PAUSE_MS = 2_000


@dataclass(frozen=True, slots=True)
class Work:
    """A job that nobody does but the test."""

    jobs: Jobs
    rows: Any
    id: bytes

    @property
    def path(self) -> str:
        return f"/-/moves?job={self.id.decode()}"

    def do(self, name: str) -> None:
        self.rows.put(MOVES, self.id, {ITEM + page_key(name): b"2 " + name.encode()})

    def end(self) -> None:
        self.jobs.work(self.id, lambda name: Item(name, 2))

    def progress(self) -> Progress:
        found = self.jobs.progress(self.id)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[WikiServer, str]]:
    """A wiki with pages, and the session of an administrator."""
    wiki = MemoryWiki()
    for name in NAMES:
        wiki.save(name, "A text.", author="Root", base=0)
    with running_wiki(wiki) as server:
        web = WikiClient(wiki)
        web.now = clock_ms() / 1_000
        yield server, session_cookie(web.signed_in("Root", admin=True))


@pytest.fixture
def work(house: tuple[WikiServer, str]) -> Work:
    rows = house[0].wiki.rows
    jobs = Jobs(rows, clock_ms)
    return Work(jobs, rows, jobs.begin(new_job(SUBPAGES, "Root", "account", source="A", target="B"), NAMES).job.id)


@pytest.fixture
def page(browser: Any, house: tuple[WikiServer, str]) -> Iterator[Any]:
    server, session = house
    with quiet_pages(browser, server, 400, 403, 404) as open_one:
        opened = open_one()
        opened.context.add_cookies([{"name": "wikka_session", "value": session, "url": server.url}])
        opened.clock.install()
        yield opened


def has_focus(page: Any, selector: str) -> bool:
    return bool(page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector))


def test_work_is_shown_in_its_place_and_stopped_by_the_keyboard(page: Any, work: Work) -> None:
    answer = page.goto(work.path)
    assert "refresh" not in answer.headers
    page.wait_for_selector(f"{SAID}:has-text('0 of 3; under way')")
    tab_to(page, STOP)
    for count, name in enumerate(NAMES[:2], start=1):
        work.do(name)
        page.clock.run_for(PAUSE_MS)
        page.wait_for_selector(f"{SAID}:has-text('{count} of 3; under way')")
        page.wait_for_selector(f"main li:has-text('{name}')")
        assert has_focus(page, STOP), "an update takes the focus from nobody"
    assert page.evaluate("document.querySelector('main progress').value") == 2
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{SAID}:has-text('2 of 3; stopped')")
    assert work.progress().is_stopped


def test_work_that_ends_under_the_finger_is_not_undone(page: Any, work: Work) -> None:
    """The button that comes to the place of “Stop” takes everything back."""
    page.goto(work.path)
    tab_to(page, STOP)
    work.end()
    page.clock.run_for(PAUSE_MS)
    page.wait_for_selector(f"{SAID}:has-text('3 of 3; ended')")
    assert page.locator("button[name=undo]").count() == 1
    assert page.locator(STOP).count() == page.locator("main [type=checkbox]").count() == 0
    assert has_focus(page, SAID)
    requests: list[str] = []
    page.on("request", lambda one: requests.append(one.url))
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    page.clock.run_for(20 * PAUSE_MS)
    assert requests == [], "no key has sent anything, and it has ended, so nobody asks any more"


def test_a_link_that_has_the_focus_stays(page: Any, work: Work) -> None:
    page.goto(work.path)
    work.do("One")
    page.clock.run_for(PAUSE_MS)
    page.wait_for_selector("main li:has-text('One')")
    tab_to(page, "main li a")
    work.do("Two")
    page.clock.run_for(PAUSE_MS)
    page.wait_for_selector(f"{SAID}:has-text('2 of 3')")
    assert has_focus(page, "main li a")
    assert page.locator("main li").count() == 1
    page.keyboard.press("Shift+Tab")
    page.wait_for_selector("main li:has-text('Two')")


def test_the_updates_are_switched_off_and_on(page: Any, work: Work) -> None:
    page.goto(work.path)
    tab_to(page, "main [type=checkbox]")
    page.keyboard.press("Space")
    requests: list[str] = []
    page.on("request", lambda one: requests.append(one.url))
    work.do("One")
    page.clock.run_for(10 * PAUSE_MS)
    assert requests == []
    page.keyboard.press("Space")
    page.clock.run_for(PAUSE_MS)
    page.wait_for_selector(f"{SAID}:has-text('1 of 3')")
    assert has_focus(page, "main [type=checkbox]")


def test_a_refusal_is_not_taken_away(page: Any, work: Work) -> None:
    page.goto(work.path)
    page.evaluate("document.querySelector('main form [name=csrf]').value = '0.0'")
    with page.expect_response(lambda answer: answer.request.method == "POST") as refused:
        page.click(STOP)
    assert refused.value.status == 403
    assert "refresh" not in refused.value.headers
    page.wait_for_selector("main .problem, main [role=alert]")
    work.do("One")
    page.clock.run_for(PAUSE_MS)
    page.wait_for_selector(f"{SAID}:has-text('1 of 3')")
    assert page.locator("main .problem, main [role=alert]").count() == 1


def test_while_the_wiki_is_away_it_is_asked_less_and_less_often(page: Any, work: Work) -> None:
    page.goto(work.path)
    requests: list[str] = []
    page.on("request", lambda one: requests.append(one.url))
    page.route("**/-/moves*", lambda route: route.fulfill(status=404, body="away"))
    for _ in range(10):
        page.clock.run_for(PAUSE_MS)
    assert 1 <= len(requests) <= 4, "after 2, 4, 8 and 16 s"
    page.unroute("**/-/moves*")
    work.do("One")
    with page.expect_response("**/-/moves*"):
        page.clock.run_for(30_000)
    page.wait_for_selector(f"{SAID}:has-text('1 of 3')")


def test_without_a_script_a_link_shows_it_anew(browser: Any, house: tuple[WikiServer, str], work: Work) -> None:
    server, session = house
    with quiet_pages(browser, server) as open_one:
        page = open_one(java_script_enabled=False)
        page.context.add_cookies([{"name": "wikka_session", "value": session, "url": server.url}])
        page.goto(work.path)
        assert page.locator("main [type=checkbox]").count() == 0
        work.do("One")
        page.click("text=Show it anew")
        page.wait_for_selector(f"{SAID}:has-text('1 of 3')")
        page.click(STOP)
        page.wait_for_selector(f"{SAID}:has-text('stopped')")


def test_axe_finds_nothing(browser: Any, house: tuple[WikiServer, str], work: Work) -> None:
    server, session = house
    work.do("One")
    with quiet_pages(browser, server) as open_one:
        page = open_one(bypass_csp=True, viewport={"width": 320, "height": 600})
        page.context.add_cookies([{"name": "wikka_session", "value": session, "url": server.url}])
        page.goto(work.path)
        page.wait_for_selector("main [type=checkbox]")
        assert axe.findings(page) == []
        page.goto("/-/jobs")
        assert axe.findings(page) == []


def test_dead_letters_are_delivered_again_by_the_keyboard(page: Any, house: tuple[WikiServer, str]) -> None:
    server, _session = house
    done = server.wiki.maintenance.done
    page.goto("/-/jobs")
    tab_to(page, "main button[name=discard]")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_selector("main .problem, main [role=alert]")
    assert done == [], "nothing is thrown away unless it is said twice"
    tab_to(page, "main button[name=retry]")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert [what for what, _, _ in done] == ["retry"]
