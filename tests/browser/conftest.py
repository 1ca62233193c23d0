"""The browsers of this folder's tests; where one is not installed its tests are skipped, and the run says so loudly.

Chromium is the browser of all tests, Firefox that of ``test_firefox``.  Firefox is the distribution's own, which
playwright drives by WebDriver BiDi.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import bidi_bridge
from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_server import WikiServer, running_wiki

# The first is the same engine without windows, and takes half the processor time.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
FLAGS = [
    "--no-sandbox",  # with one it refuses to run as root, which containers often are
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    # Newer ones ask before a page reaches this machine; the store must not need that.  The popups of their address bar
    # are pages in a process of their own, which takes 0.5 s of processor time for each window that a test opens.
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessChecks,"
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    "--host-resolver-rules=MAP *.example 127.0.0.1",  # names that strangers have made to lead to this machine
]
PATIENCE_MS = 30_000  # of what a test waits for: the machine may be busy
# Chromium says so if somebody types into a page before its first frame: a program does on a busy machine.
FASTER_THAN_AUTOFOCUS = "Autofocus processing was blocked"


class Playwright:
    """The driver of this process's browsers, and the loop by which it runs in this thread.

    Outside ``running`` the loop does not run as far as others can see: they run their own.
    """

    def __init__(self, driver: Any, loop: Any) -> None:
        self.driver = driver
        self._loop = loop

    @contextmanager
    def running(self) -> Iterator[Any]:
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._loop)
        try:
            yield self.driver
        finally:
            asyncio._set_running_loop(before)


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    playwright = pytest.importorskip("playwright.sync_api", reason=_missing("playwright"))
    with playwright.sync_playwright() as driver:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield Playwright(driver, loop)
        asyncio._set_running_loop(loop)


@pytest.fixture(scope="session")
def opened_chromium(playwright_driver: Playwright) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(_missing("Chromium (Debian: apt-get install chromium)"))
    with playwright_driver.running() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield opened
    with playwright_driver.running():
        opened.close()


@pytest.fixture(scope="session")
def opened_firefox(playwright_driver: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if FIREFOX is None:
        pytest.skip(_missing("Firefox (Debian: apt-get install firefox-esr)", "TESTS IN FIREFOX"))
    folder = tmp_path_factory.mktemp("firefox")
    with opened_firefox_of(playwright_driver, folder, "light") as opened:
        yield opened


@contextmanager
def opened_firefox_of(playwright_driver: Playwright, folder: Path, scheme: str) -> Iterator[Any]:
    """A Firefox whose system has light or dark colours."""
    assert FIREFOX is not None, "the caller has looked"
    program = bidi_bridge.program(folder, FIREFOX, scheme)
    preferences = bidi_bridge.preferences(scheme)
    with playwright_driver.running() as driver:
        # The name of a channel has playwright speak WebDriver BiDi, which needs no Firefox of its own making.
        opened = driver.firefox.launch(channel="moz-firefox", executable_path=program, firefox_user_prefs=preferences)
    try:
        yield opened
    finally:
        with playwright_driver.running():
            opened.close()


@pytest.fixture(scope="module")
def browser(playwright_driver: Playwright, opened_chromium: Any) -> Iterator[Any]:
    with playwright_driver.running():
        yield opened_chromium


@pytest.fixture(scope="module")
def firefox(playwright_driver: Playwright, opened_firefox: Any) -> Iterator[Any]:
    with playwright_driver.running():
        yield opened_firefox


def _missing(what: str, which: str = "BROWSER TESTS") -> str:
    return f"THE {which} DID NOT RUN: {what} is not installed"


@pytest.fixture
def server() -> Iterator[WikiServer]:
    with running_wiki(MemoryWiki()) as running:
        yield running


@contextmanager
def quiet_pages(
    browser: Any, server: WikiServer, *expected: int, ignored: tuple[str, ...] = (), script: str = ""
) -> Iterator[Callable[..., Any]]:
    """Opens pages of new visitors; at the end no console has said anything but of the ``expected`` statuses.

    ``ignored``: beginnings of what it may say besides, as of a network that a test cuts.  ``script`` runs in each page
    before the page's own.
    """
    said: list[str] = []
    contexts = []
    ignored = (FASTER_THAN_AUTOFOCUS, *ignored)

    def hear(text: str) -> None:
        if not text.startswith(ignored) and not any(f"status of {status}" in text for status in expected):
            said.append(text)

    def open_one(**options: Any) -> Any:
        contexts.append(browser.new_context(base_url=server.url, **options))
        page = contexts[-1].new_page()
        if script:
            page.add_init_script(script)
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: hear(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert said == []


def becomes(page: Any, selector: str, name: str, value: Any) -> None:
    """Waits until a property of an element has the value; the page's policy forbids to evaluate in it while waiting."""
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect(page.locator(selector)).to_have_js_property(name, value, timeout=PATIENCE_MS)
