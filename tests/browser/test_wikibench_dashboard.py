"""The page of a running replay, and of a search, in a real browser: two follow it, one stops it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from tests.browser.conftest import becomes
from tests.support.fake_wiki import FakeWiki

ROOT = Path(__file__).parents[2]
WAIT_S = 30  # the machine may be busy


@contextmanager
def running(command: str, tmp_path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a command with a dashboard and a trace of ten minutes; yield it, and the address that it printed."""
    trace = tmp_path / "trace"
    trace.write_text("".join(f"{n} {1 + n / 20:.2f} http://w/Page{n % 9} -\n" for n in range(12_000)))
    with FakeWiki() as wiki:
        words = [trace, "--target", wiki.url, "--dashboard", "127.0.0.1:0", "--report", tmp_path / "out", *options]
        code = "from wikibench.cli import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, command, *map(str, words)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert process.stderr is not None
        found = re.match(r"dashboard: (http://\S+)", process.stderr.readline())
        assert found is not None
        try:
            yield process, found[1]
        finally:
            process.kill()
            process.stderr.close()
            process.wait()


def test_two_follow_a_replay_and_one_stops_it(browser: Any, tmp_path: Path) -> None:
    with running("replay", tmp_path) as (process, url):
        follow_and_stop(browser, process, url, tmp_path)


def follow_and_stop(browser: Any, process: subprocess.Popen[str], url: str, tmp_path: Path) -> None:
    bare = url.partition("#")[0]
    said: list[str] = []
    pages = []
    for address, options in ((url, {}), (bare, {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}})):
        page = browser.new_context(**options).new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: request.url.startswith(bare) or said.append(request.url))
        page.goto(address)
        pages.append(page)
    for page in pages:
        page.wait_for_selector("[data-plot=latency] canvas")
        page.wait_for_selector("#kinds tr")
        assert page.locator(".tile").count() == 8
        page.locator("[data-plot=rate] summary").click()
        page.wait_for_selector("[data-plot=rate] tbody tr:nth-child(2)")
    owner, guest = pages
    zooms_while_figures_come(owner)
    fits_paper(guest)
    assert not guest.locator("#stop").is_visible()
    text = requests.get(bare + "metrics", timeout=WAIT_S).text
    assert re.search(r'^wikibench_requests_total\{kind="page",outcome="2xx"\} [1-9]', text, re.M)
    assert re.search(r'^wikibench_response_seconds_bucket\{kind="page",le="\+Inf"\} [1-9]', text, re.M)
    assert requests.post(bare + "stop", headers={"X-Token": "guessed"}, timeout=WAIT_S).status_code == 403
    assert requests.get(bare, headers={"Host": "wiki.example"}, timeout=WAIT_S).status_code == 403
    owner.click("#stop")
    for page in pages:
        becomes(page, "#state", "textContent", "ended: interrupted")
        page.context.close()
    assert process.wait(WAIT_S) == 130
    assert (tmp_path / "out" / "report.html").exists()
    assert said == []


def zooms_while_figures_come(page: Any) -> None:
    ends = "(name) => [charts[name].scales.x.min, charts[name].scales.x.max]"
    scales = f"page.then(({{charts}}) => ['latency', 'rate'].map({ends}))"
    page.wait_for_selector("[data-plot=rate] tbody tr:nth-child(4)")
    page.click("#zoom-in")
    page.wait_for_selector("#zoom-whole:enabled")
    latency, rate = page.evaluate(scales)
    assert latency == rate
    assert 0 < latency[0] < latency[1]
    seen = page.locator("[data-plot=rate] tbody tr").count()
    page.wait_for_selector(f"[data-plot=rate] tbody tr:nth-child({seen + 2})")
    assert page.evaluate(scales) == [latency, rate], "new figures leave the zoom as it is"
    page.click("#zoom-whole")
    page.wait_for_selector("#zoom-whole:disabled")
    assert page.evaluate(scales)[0][0] == 0


def fits_paper(page: Any) -> None:
    """The page was opened dark; on paper it is dark on light, and has its plots without what only a screen can use."""
    page.emulate_media(media="print")
    assert page.locator("[data-plot=latency] canvas").is_visible()
    assert page.locator("#kinds tr").first.is_visible()
    assert page.locator("button:visible, details:visible").count() == 0
    ink = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
    assert ink == "#22262b"
    page.emulate_media(media="screen")


def test_a_search_has_its_tries_and_its_answer_so_far(browser: Any, tmp_path: Path) -> None:
    options = ("--require", "p95<1000s", "--duration", "2s", "--to", "100000", "--lateness", "60s")
    said: list[str] = []
    with running("search", tmp_path, *options) as (process, url):
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(url)
        page.wait_for_selector("#tries tr:nth-child(2)")
        first = page.locator("#tries tr").first.locator("td").all_text_contents()
        assert (first[0], first[1][:2], first[-1]) == ("1: kept", "50", "0")
        assert "Kept so far: " in page.locator("#answer").text_content()
        state = "document.querySelector('#state').textContent"
        page.wait_for_function(f"() => /^try [0-9]+: [0-9]+.s, running, [0-9] of 2 s$/.test({state})")
        page.wait_for_selector("[data-plot=latency] canvas")
        text = requests.get(url.partition("#")[0] + "metrics", timeout=WAIT_S).text
        assert re.search(r"^wikibench_search_tries [1-9]", text, re.M)
        assert re.search(r'^wikibench_search_requests_per_second\{bound="answer"\} [1-9]', text, re.M)
        page.click("#stop")
        becomes(page, "#state", "textContent", "ended: interrupted")
        assert "the search ended before a rate was missed" in page.locator("#answer").text_content()
        assert process.wait(WAIT_S) == 130
        page.close()
    assert (tmp_path / "out" / "search.html").exists()
    assert said == []
