"""One browser for all tests of this folder; where there is none they are skipped, and the run says so loudly."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_server import WikiServer, running_wiki

# The first is the same engine without windows, and takes half the processor time.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
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
# Chromium says so if somebody types into a page before its first frame: a program does on a busy machine.
FASTER_THAN_AUTOFOCUS = "Autofocus processing was blocked"


@pytest.fixture(scope="session")
def opened_browser() -> Iterator[tuple[Any, Any]]:
    """A browser, and the loop by which playwright runs in this thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason=_missing("playwright"))
    if CHROMIUM is None:
        pytest.skip(_missing("Chromium (Debian: apt-get install chromium)"))
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        loop = asyncio.get_running_loop()
        yield opened, loop
        asyncio._set_running_loop(loop)
        opened.close()


@pytest.fixture(scope="module")
def browser(opened_browser: tuple[Any, Any]) -> Iterator[Any]:
    """The one of this process; between modules its loop does not run as far as others can see: they run their own."""
    opened, loop = opened_browser
    asyncio._set_running_loop(loop)
    yield opened
    asyncio._set_running_loop(None)


def _missing(what: str) -> str:
    return f"THE BROWSER TESTS DID NOT RUN: {what} is not installed"


@pytest.fixture
def server() -> Iterator[WikiServer]:
    with running_wiki(MemoryWiki()) as running:
        yield running


@contextmanager
def quiet_pages(
    browser: Any, server: WikiServer, *expected: int, ignored: tuple[str, ...] = ()
) -> Iterator[Callable[..., Any]]:
    """Opens pages of new visitors; at the end no console has said anything but of the ``expected`` statuses.

    ``ignored``: beginnings of what it may say besides, as of a network that a test cuts.
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
        page.set_default_timeout(10_000)
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
    playwright.expect(page.locator(selector)).to_have_js_property(name, value, timeout=10_000)
