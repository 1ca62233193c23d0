"""python -m tests.proofs.wiki_access: axe on every page in light, dark and forced colours; widths.

    axe       all rules, best practices too, on every handler and on the states behind forms, in three modes
    widths    at 320 px (400 % of 1,280) no page scrolls sideways

The exit status is 0 if axe finds nothing and nothing scrolls sideways.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import click
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support import axe
from tests.support.seen_pages import pages, running_scene, show
from tests.support.wiki_scene import Scene


class Looking:
    def __init__(self, browser: Any, url: str, scene: Scene) -> None:
        self._browser = browser
        self._url = url
        self._scene = scene

    def axe(self) -> list[str]:
        found = []
        for mode, options in axe.MODES.items():
            context = self._browser.new_context(bypass_csp=True, **options)
            page = context.new_page()
            for seen in pages():
                show(page, self._url, self._scene, seen)
                found += [f"{mode}: {seen.name}: {problem}" for problem in axe.findings(page)]
            context.close()
        return found

    def widths(self) -> list[str]:
        found = []
        context = self._browser.new_context(viewport={"width": 320, "height": 256})
        page = context.new_page()
        for seen in pages():
            show(page, self._url, self._scene, seen)
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if over > 0:
                found.append(f"{seen.name}: {over} px wider than 320 px")
        context.close()
        return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Look at every page of the wiki as people with other eyes and hands do."""
    began_s = time.monotonic()
    with running_scene() as (scene, url), sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        looking = Looking(browser, url, scene)
        found = looking.axe() + looking.widths()
        browser.close()
    for problem in found:
        click.echo(problem)
    shown = f"{len(pages())} pages in {len(axe.MODES)} modes"
    click.echo(f"{shown}, {time.monotonic() - began_s:.0f} s: {len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
