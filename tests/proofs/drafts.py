"""python -m tests.proofs.drafts --kills 20 --cuts 10: typed text survives the death of the browser and network cuts.

A wiki in memory, a Chromium, and a person who types numbered words at changing speed, with pauses, from the printed
seed.  A kill is kill -9 of the browser at a random moment; then the same person comes back in a new browser, signed in
again, and takes what the editor offers.  The proof fails if

    lost     a word is missing that was typed more than LOSS_S before the kill
    false    the editor said "Kept" of a text that the wiki had not confirmed, or the wiki has less than it confirmed

A cut is a network that goes away at a random moment of typing and comes back later, or goes away during a save.  Then
no word may be missing at all, and the editor may not say "Kept" during the cut.

With ``--visitors`` the person has no account, but a cookie that the browser writes to its disk only after half a
minute.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import track

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.wiki_server import WikiServer, running_wiki

LOSS_S: Final = 10.0
SAID_S: Final = 1.0  # without an account "Kept" is said when the browser has written its copy, some ms after the answer
READY_S: Final = 30.0
PASSWORD: Final = "correct horse battery"
_STATUS: Final = "document.querySelector('.kept-status').textContent"

console = Console(width=120, highlight=False)


@dataclass
class Found:
    kills: int = 0
    cuts: int = 0
    words: int = 0
    drafts: int = 0
    longest_loss_s: float = 0.0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Typed:
    """The words of one person, each with the moment at which its last key was pressed."""

    words: list[tuple[str, float]] = field(default_factory=list)
    answers: list[tuple[str, float]] = field(default_factory=list)  # drafts that the wiki confirmed, and when

    def confirmed(self, until_s: float) -> str:
        """Return the longest draft that the wiki had confirmed at ``until_s``."""
        return max((text for text, at_s in self.answers if at_s <= until_s), key=len, default="")

    def missing_s(self, found: str, until_s: float) -> float:
        """Return the age at ``until_s`` of the first word that ``found`` lacks, in seconds; 0 if no word is missing."""
        there = set(found.split())
        return max((until_s - at_s for word, at_s in self.words if word not in there), default=0.0)


class Browser:
    """A Chromium in a process group of its own, with a profile that outlives it."""

    def __init__(self, profile: Path, playwright: Any) -> None:
        self._profile = profile
        self._playwright = playwright
        self._process: subprocess.Popen[bytes] | None = None
        self.context: Any = None

    def start(self) -> None:
        assert CHROMIUM is not None, "the caller has looked"
        port_file = self._profile / "DevToolsActivePort"
        port_file.unlink(missing_ok=True)
        (self._profile / "SingletonLock").unlink(missing_ok=True)
        flags = [*FLAGS, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={self._profile}"]
        self._process = subprocess.Popen(
            [CHROMIUM, *flags, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until_s = time.monotonic() + READY_S
        while not (port_file.exists() and len(port_file.read_text().split()) == 2):
            if time.monotonic() > until_s or self._process.poll() is not None:
                raise RuntimeError("Chromium did not start")
            time.sleep(0.05)
        port = port_file.read_text().split()[0]
        self.context = self._playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}").contexts[0]

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


class Person:
    """A person at a wiki, who types, loses the browser or the network, and comes back."""

    def __init__(self, server: WikiServer, browser: Browser, rng: Random, name: str) -> None:
        self._server = server
        self._browser = browser
        self._rng = rng
        self.name = name  # "": no account
        self._cookies: list[Any] = []
        self._heard: Any = None  # the context whose page asks nothing

    def page(self, place: str) -> Any:
        context = self._browser.context
        page = context.pages[0] if context.pages else context.new_page()
        page.set_default_timeout(15_000)
        if self._heard is not context:  # a new browser
            page.on("dialog", lambda dialog: dialog.accept())
            self._heard = context
        if self._cookies:
            context.add_cookies(self._cookies)
        page.goto(f"{self._server.url}{place}")
        return page

    def register(self) -> None:
        if not self.name:
            return
        page = self.page("/-/register")
        page.fill("[name=user]", self.name)
        page.fill("[name=password]", PASSWORD)
        page.click("main button[type=submit]")
        page.wait_for_selector(".me")
        self._cookies = self._browser.context.cookies()  # signing in again gives the like

    def saved(self, name: str) -> str:
        page = self._server.wiki.page(name)
        return page.body if page else ""

    def edit(self, name: str) -> Any:
        page = self.page(f"/{name}/edit")
        page.wait_for_selector("[data-offered]")
        page.focus("#body")
        return page

    def type(self, page: Any, seconds: float, found: Found) -> Typed:
        """Type until ``seconds`` have passed; return the words, and the drafts that the wiki confirms now and later."""
        typed = Typed()
        sent: dict[Any, str] = {}

        def answered(response: Any) -> None:
            if response.request in sent and response.ok:
                found.drafts += 1
                typed.answers.append((sent[response.request], time.monotonic()))

        def asked(request: Any) -> None:
            if request.url.endswith("/draft"):
                sent[request] = request.post_data or ""

        page.on("request", asked)
        page.on("response", answered)
        self.go_on(page, seconds, typed, found)
        return typed

    def go_on(self, page: Any, seconds: float, typed: Typed, found: Found) -> None:
        until_s = time.monotonic() + seconds
        began = len(typed.words)
        while time.monotonic() < until_s:
            word = f"w{len(typed.words):04d}x{self._rng.randrange(1000)}"
            page.keyboard.type(f"{word} ")
            typed.words.append((word, time.monotonic()))
            said = page.evaluate(_STATUS)
            pause_s = self._rng.choice([0.05, 0.05, 0.1, 0.1, 0.3, 0.3, 1.0, 2.6])
            page.wait_for_timeout(1000 * min(pause_s, max(0.05, until_s - time.monotonic())))
            if said.startswith("Kept") and not typed.answers:
                found.wrong.append("false: it says Kept before any answer")
        found.words += len(typed.words) - began

    def offered(self, name: str) -> list[str]:
        """Return the texts that the editor offers on return: the wiki's drafts and the browser's copies."""
        page = self.edit(name)
        texts = [page.input_value("#body")]
        for n in range(page.locator(".banner.copy").count()):
            page.click(f".banner.copy >> nth={n} >> text=Go on with it")
            texts.append(page.input_value("#body"))
            page = self.edit(name)
        drafts = page.eval_on_selector_all("a[href*='edit?draft=']", "all => all.map(one => one.getAttribute('href'))")
        for place in drafts:
            page = self.page(place)
            page.wait_for_selector(".toolbar")
            texts.append(page.input_value("#body"))
        return texts


def killed_once(person: Person, browser: Browser, rng: Random, name: str, longest_s: float, found: Found) -> None:
    page = person.edit(name)
    typed = person.type(page, rng.uniform(1.0, longest_s), found)
    browser.kill()
    killed_s = time.monotonic()
    browser.start()
    texts = person.offered(name)
    best = max(texts, key=len)
    loss_s = typed.missing_s(best, killed_s)
    found.kills += 1
    found.longest_loss_s = max(found.longest_loss_s, loss_s)
    if loss_s > LOSS_S:
        found.wrong.append(f"lost: {name}: a word typed {loss_s:.1f} s before the kill is missing")
    confirmed = typed.confirmed(killed_s - (0 if person.name else SAID_S))
    missing = [word for word, _ in typed.words if word in confirmed and word not in best]
    if missing:
        found.wrong.append(f"false: {name}: confirmed, and not there: {missing[:3]}")


def cut_once(person: Person, browser: Browser, rng: Random, name: str, found: Found) -> None:
    """Cut the network while the person types, or during a save, and restore it."""
    page = person.edit(name)
    typed = person.type(page, rng.uniform(0.2, 3.0), found)
    network = browser.context.new_cdp_session(page)
    away = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.enable")
    during_save = rng.random() < 0.5
    if during_save:
        page.keyboard.press("Control+s")
    network.send("Network.emulateNetworkConditions", away)
    if during_save:
        page.wait_for_timeout(300 + rng.random() * 1_000)
    else:
        before = page.evaluate(_STATUS)
        person.go_on(page, rng.uniform(3.0, 6.0), typed, found)
        after = page.evaluate(_STATUS)
        if after.startswith("Kept") and after != before:
            found.wrong.append(f"false: {name}: it says {after!r} while the network is away")
    network.send("Network.emulateNetworkConditions", {**away, "offline": False})
    found.cuts += 1
    saved = _saved_in_the_end(page, typed, person, name)
    if typed.missing_s(saved, time.monotonic()) > 0:
        found.wrong.append(f"lost: {name}: the saved page lacks words after a cut")


def _saved_in_the_end(page: Any, typed: Typed, person: Person, name: str) -> str:
    """Save again if the person still sees the editor, as people do; return the page's text."""
    for _ in range(3):
        if page.locator("#body").count():
            page.keyboard.press("Control+s")
        page.wait_for_timeout(700)
        body = person.saved(name)
        if all(word in body for word, _ in typed.words):
            return body
        if page.locator("#body").count() == 0 and page.locator(".provenance").count() == 0:
            page = person.edit(name)
    return person.saved(name)


@contextmanager
def trial(name: str, rng: Random) -> Iterator[tuple[Person, Browser]]:
    from playwright.sync_api import sync_playwright

    profile = Path(tempfile.mkdtemp(prefix="wikka-drafts-"))
    with running_wiki() as server, sync_playwright() as playwright:
        browser = Browser(profile, playwright)
        try:
            browser.start()
            person = Person(server, browser, rng, name)
            person.register()
            yield person, browser
        finally:
            browser.kill()
            shutil.rmtree(profile, ignore_errors=True)


def run(kills: int, cuts: int, seed: int, *, longest_s: float = 30.0, visitors: bool = False) -> Found:
    rng, found = Random(seed), Found()
    with trial("" if visitors else "Ada", rng) as (person, browser):
        for n in track(range(kills), "kills", console=console, disable=not console.is_terminal):
            killed_once(person, browser, rng, f"Killed{n}", longest_s, found)
        for n in track(range(cuts), "cuts", console=console, disable=not console.is_terminal):
            cut_once(person, browser, rng, f"Cut{n}", found)
    return found


@click.command(
    help=(__doc__ or "").partition(":")[2].strip().replace("\n    lost", "\n\b\n    lost"),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--kills", default=20, show_default=True)
@click.option("--cuts", default=10, show_default=True)
@click.option("--seed", default=20261124, show_default=True)
@click.option("--visitors", is_flag=True, help="Without an account.")
def main(kills: int, cuts: int, seed: int, visitors: bool) -> None:
    if CHROMIUM is None:
        raise click.ClickException("Chromium is not installed (Debian: apt-get install chromium)")
    console.print(f"seed {seed}")
    found = run(kills, cuts, seed, visitors=visitors)
    console.print(
        f"{found.kills} kills, {found.cuts} cuts, {found.words:,} words, {found.drafts} drafts confirmed; "
        f"at most {found.longest_loss_s:.1f} s of text missing after a kill, of {LOSS_S:.0f} s that may be"
    )
    for problem in found.wrong:
        console.print(f"WRONG  {problem}", markup=False)
    sys.exit(1 if found.wrong else 0)


if __name__ == "__main__":
    main()
