"""python -m tests.proofs.wiki_access: axe on every page in light, dark and forced colours; widths; pictures.

    axe       all rules, best practices too, on every handler and on the states behind forms, in three modes
    widths    at 320 px (400 % of 1,280) no page scrolls sideways
    --pictures FOLDER   ten pages at 390, 768 and 1,280 px, light and dark, to be looked at
    --readme            the two pictures of the README are made anew

The exit status is 0 if axe finds nothing and nothing scrolls sideways.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

import click
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support import axe
from tests.support.seen_pages import Seen, pages, rich_scene, show
from tests.support.wiki_scene import Scene
from tests.support.wiki_server import running_wiki

PICTURED: Final = "read edit conflict revisions diff acls recentchanges search settings login".split()  # noqa: SIM905
WIDTHS: Final = {390: 844, 768: 1024, 1280: 800}
IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"


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

    def pictures(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        chosen = [seen for name in PICTURED for seen in pages() if seen.name == name]
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                for seen in chosen:
                    self._picture(seen, width, scheme, folder / f"{seen.name}-{width}-{scheme}.png")

    def _picture(self, seen: Seen, width: int, scheme: str, path: Path) -> None:
        context = self._browser.new_context(viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme)
        page = context.new_page()
        show(page, self._url, self._scene, seen)
        page.screenshot(path=str(path))
        context.close()

    def readme(self) -> None:
        read = next(seen for seen in pages() if seen.name == "read")
        self._picture(read, 1280, "light", IMAGES / "wiki.png")
        self._picture(read, 390, "light", IMAGES / "wiki-phone.png")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pictures", type=click.Path(file_okay=False, path_type=Path), help="Only these, into this folder.")
@click.option("--readme", is_flag=True, help="Only the pictures of the README.")
def main(pictures: Path | None, readme: bool) -> None:
    """Look at every page of the wiki as people with other eyes and hands do."""
    began_s = time.monotonic()
    scene = rich_scene()
    with running_wiki(scene.wiki) as server, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        looking = Looking(browser, server.url, scene)
        found: list[str] = []
        if pictures:
            looking.pictures(pictures)
        if readme:
            looking.readme()
        if not pictures and not readme:
            found = looking.axe() + looking.widths()
        browser.close()
    for problem in found:
        click.echo(problem)
    if not pictures and not readme:
        shown = f"{len(pages())} pages in {len(axe.MODES)} modes"
        click.echo(f"{shown}, {time.monotonic() - began_s:.0f} s: {len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
