"""python -m tests.proofs.wiki_pictures FOLDER: pages of the wiki as pictures, to be looked at or compared.

    pictures        each page of ``seen_pages`` at 390, 768 and 1,280 px, light and dark: FOLDER/WIDTH-SCHEME/NAME.png
    sheets          those of a width and a scheme side by side: FOLDER/WIDTH-SCHEME-N.png
    --kept FOLDER   those of an earlier call, compared: a page differs if more than --differ of its pixels do
    --paint         first paint and layout shift of each page on a slow phone: over 1 s, or any shift, is a finding
    --readme        the two pictures of the README are made anew

The exit status is 0 if nothing differs from the kept ones and no page is slow or moves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from PIL import Image, ImageChops, ImageDraw
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.seen_pages import Seen, pages, rich_scene, show
from tests.support.wiki_scene import Scene
from tests.support.wiki_server import running_wiki

WIDTHS: Final = {390: 844, 768: 1024, 1280: 800}
SCHEMES: Final = ("light", "dark")
LONGEST_PX: Final = 1_600  # of a picture: the rest of a longer page is left out
SHEET: Final = 12  # pictures of a sheet
SHEET_PX: Final = 1_800  # its width
STRONGLY: Final = 48  # of 255: a pixel that differs less is the same, as at the edges of letters
IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
# Of a slow phone: Lighthouse's slow 4G, and a processor of a quarter of this one's speed.
NETWORK: Final = {"offline": False, "latency": 150, "downloadThroughput": 204_800, "uploadThroughput": 96_000}
SLOWED: Final = 4
FIRST_PAINT_MS: Final = 1_000
NOTE_SHIFTS: Final = """
window.shifted = 0;
new PerformanceObserver(list => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({type: "layout-shift", buffered: true});
"""
PAINT: Final = """() => new Promise(done => {
  const painted = performance.getEntriesByName("first-contentful-paint")[0];
  requestAnimationFrame(() => setTimeout(() => done([painted ? painted.startTime : -1, window.shifted]), 0));
})"""


class Screenshots:
    def __init__(self, browser: Any, url: str, scene: Scene) -> None:
        self._browser = browser
        self._url = url
        self._scene = scene

    def picture(self, seen: Seen, width: int, scheme: str, path: Path, longest: int) -> None:
        with self._browser.new_context(
            viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme
        ) as context:
            page = context.new_page()
            show(page, self._url, self._scene, seen)
            height = min(longest, page.evaluate("document.documentElement.scrollHeight"))
            page.set_viewport_size({"width": width, "height": max(height, WIDTHS[width])})
            page.screenshot(path=str(path), animations="disabled")

    def pictures(self, folder: Path) -> Iterator[Path]:
        """Take all pictures of one width and scheme after the other; yield their folders."""
        for scheme in SCHEMES:
            for width in WIDTHS:
                kind = folder / f"{width}-{scheme}"
                kind.mkdir(parents=True, exist_ok=True)
                for seen in pages():
                    self.picture(seen, width, scheme, kind / f"{file_name(seen)}.png", LONGEST_PX)
                yield kind

    def paint(self, seen: Seen) -> tuple[float, float]:
        """Return the milliseconds until the first paint of a page on a slow phone, and its layout shift."""
        with self._browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True) as context:
            context.add_init_script(NOTE_SHIFTS)
            page = context.new_page()
            slow = context.new_cdp_session(page)
            slow.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
            slow.send("Network.enable")
            slow.send("Network.emulateNetworkConditions", NETWORK)
            show(page, self._url, self._scene, seen)
            page.wait_for_load_state("networkidle")
            painted, shifted = page.evaluate(PAINT)
        return painted, shifted


def file_name(seen: Seen) -> str:
    return f"{seen.name} as {seen.role}".replace(" ", "-").replace("/", "-")


def make_sheets(kind: Path) -> list[Path]:
    """Put the pictures of a folder side by side, each with its name; return the sheets beside the folder."""
    sheets = []
    paths = sorted(kind.glob("*.png"))
    for first in range(0, len(paths), SHEET):
        some = paths[first : first + SHEET]
        columns = (len(some) + 1) // 2
        wide = SHEET_PX // max(columns, 1)
        tall = wide * 3 // 2
        sheet = Image.new("RGB", (wide * columns, 2 * (tall + 16)), "grey")
        for number, path in enumerate(some):
            with Image.open(path) as picture:
                small = picture.convert("RGB").resize((wide - 6, picture.height * (wide - 6) // picture.width))
            at = (number % columns * wide, number // columns * (tall + 16))
            sheet.paste(small.crop((0, 0, wide - 6, min(tall, small.height))), (at[0], at[1] + 14))
            ImageDraw.Draw(sheet).text(at, path.stem, fill="yellow")
        sheets.append(kind.parent / f"{kind.name}-{first // SHEET + 1}.png")
        sheet.save(sheets[-1])
    return sheets


def share_that_differs(one: Path, other: Path) -> float:
    """Return the share of pixels that differ; of pictures of two heights, what only one has differs."""
    with Image.open(one) as left, Image.open(other) as right:
        if left.width != right.width:
            return 1.0
        low, high = sorted((left.height, right.height))
        box = (0, 0, left.width, low)
        parts = ImageChops.difference(left.convert("L").crop(box), right.convert("L").crop(box)).histogram()
    return (sum(parts[STRONGLY:]) / left.width + (high - low)) / high


def compared(kind: Path, kept: Path, most: float) -> list[str]:
    """Return the pages of a folder that differ from the kept ones, are new, or are gone."""
    names = {path.name for path in kind.glob("*.png")}
    earlier = {path.name for path in (kept / kind.name).glob("*.png")}
    found = [f"{kind.name}/{name}: not among the kept ones" for name in sorted(names - earlier)]
    found += [f"{kind.name}/{name}: kept, and no page now" for name in sorted(earlier - names)]
    for name in sorted(names & earlier):
        share = share_that_differs(kind / name, kept / kind.name / name)
        if share > most:
            found.append(f"{kind.name}/{name}: {share:.1%} of its pixels differ")
    return found


def painted(screenshots: Screenshots) -> list[str]:
    """Print the paint of each page; return those that are slow or move."""
    found = []
    for seen in pages():
        if seen.then is not None or seen.before is not None:
            continue  # a state behind a form is no first paint
        ms, shifted = screenshots.paint(seen)
        click.echo(f"{seen.name:30} {seen.role:14} first paint {ms:5.0f} ms, layout shift {shifted:.4f}")
        if not 0 <= ms <= FIRST_PAINT_MS or shifted > 0:
            found.append(f"{seen.name} as {seen.role}: first paint {ms:.0f} ms, layout shift {shifted:.4f}")
    return found


def pictured(screenshots: Screenshots, folder: Path, kept: Path | None, differ: float) -> list[str]:
    found = []
    for kind in screenshots.pictures(folder):
        for sheet in make_sheets(kind):
            click.echo(sheet)
        found += [] if kept is None else compared(kind, kept, differ)
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option("--kept", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Of an earlier call.")
@click.option("--differ", default=0.01, show_default=True, help="Share of pixels that may differ: times of day do.")
@click.option("--paint", is_flag=True, help="Only first paint and layout shift, on a slow phone.")
@click.option("--readme", is_flag=True, help="Only the pictures of the README.")
def main(folder: Path | None, kept: Path | None, differ: float, paint: bool, readme: bool) -> None:
    """Take pictures of the wiki's pages, or measure how they are painted."""
    if folder is None and not paint and not readme:
        raise click.UsageError("name a FOLDER for the pictures, or say --paint or --readme")
    scene = rich_scene()
    found: list[str] = []
    with running_wiki(scene.wiki) as server, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        screenshots = Screenshots(browser, server.url, scene)
        if readme:
            read = next(seen for seen in pages() if seen.name == "read")
            screenshots.picture(read, 1280, "light", IMAGES / "wiki.png", 800)
            screenshots.picture(read, 390, "light", IMAGES / "wiki-phone.png", 844)
        if paint:
            found += painted(screenshots)
        if folder is not None:
            found += pictured(screenshots, folder, kept, differ)
        browser.close()
    for problem in found:
        click.echo(problem)
    click.echo(f"{len(pages())} pages: {len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
