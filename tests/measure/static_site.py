"""The export of a large wiki as a static site: pages a second, memory, and what a killed export leaves to do.

    python -m tests.measure.static_site --pages 20000

Starts a store with an empty folder and makes the wiki of ``wikka synth`` in it, with a picture on every hundredth page.

    first    ``wikka export --to html`` of the first tenth of the pages, for its memory
    whole    the same of all pages
    killed   it dies by kill -9 as soon as half of the pages are written
    goes on  the same command again: how many pages and files it left as they were

Fails if the whole export needs --more MB beyond the first one, if the continued site has another digest than the whole
one, or if a file was copied again.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.exported_wiki import add_file, png_of
from tests.support.standalone_store import ENVIRONMENT, ROOT, StoreProcess
from wikka_port.commands.synth import make_wiki, page_name
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.visitors import COMMAND

FLAGS: Final = ("--trigger-modules", "wikka_port.triggers")
FILES_EACH: Final = 100  # pages with one file
LOOK_S: Final = 0.2
_KEPT: Final = re.compile(r"([\d,]+) of the (pages|files) were ")


@dataclass(frozen=True, slots=True)
class Figures:
    seconds: float
    cpu_s: float
    peak_mb: float
    said: str

    def line(self, pages: int) -> str:
        rate = f"{pages:,} pages in {self.seconds:.1f} s, {pages / self.seconds:.0f} pages/s"
        return f"{rate}, {self.cpu_s:.1f} s of CPU, at most {self.peak_mb:.0f} MB"

    def kept(self) -> dict[str, int]:
        return {what: int(number.replace(",", "")) for number, what in _KEPT.findall(self.said)}


def export(store: str, out: Path, *, killed_at: int | None = None) -> Figures:
    """Export to ``out``; kill the command as soon as ``killed_at`` pages are there."""
    words = ["export", "--to", "html", "--store", store, str(out)]
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "wikka_port", *words], env=ENVIRONMENT, cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    if killed_at is not None:
        pages = out.with_name(f"{out.name}.part") / "pages"
        while not pages.is_dir() or len(os.listdir(pages)) < killed_at:
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(LOOK_S)
        process.send_signal(signal.SIGKILL)
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == (0 if killed_at is None else -signal.SIGKILL), said
    seconds = time.monotonic() - begun
    return Figures(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, said)


def fill(wiki: Wiki, pages: int, begin: int) -> None:
    make_wiki(wiki, pages=pages)
    for number in range(begin, pages, FILES_EACH):
        add_file(wiki.files, page_name(number), "picture.png", png_of(1 + number % 500, 1 + number // 500), _BY)


_BY: Final = By(COMMAND, "", "")


def digest_of(folder: Path) -> str:
    """Return a digest of all paths and bytes of a site."""
    made = sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        made.update(f"{path.relative_to(folder)}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return made.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--more", type=float, default=48.0, help="MB that the whole may need beyond the first tenth")
    given = parser.parse_args()
    tenth = max(given.pages // 10, 1)
    with tempfile.TemporaryDirectory() as name, StoreProcess(Path(name) / "data", *FLAGS) as store:
        folder, address = Path(name), f"127.0.0.1:{store.port}"
        wiki = Wiki("127.0.0.1", store.port)
        wiki.prepare()
        fill(wiki, tenth, 0)
        first = export(address, folder / "first")
        print(f"first    {first.line(tenth)}", flush=True)
        fill(wiki, given.pages, -(-tenth // FILES_EACH) * FILES_EACH)
        wiki.store.close()
        whole = export(address, folder / "whole")
        print(f"whole    {whole.line(given.pages)}", flush=True)
        killed = export(address, folder / "site", killed_at=given.pages // 2)
        print(f"killed   after {killed.seconds:.1f} s", flush=True)
        again = export(address, folder / "site")
        kept = again.kept()
        left = f"{kept.get('pages', 0):,} pages and {kept.get('files', 0):,} files were left as they were"
        print(f"goes on  {again.seconds:.1f} s, at most {again.peak_mb:.0f} MB; {left}")
        is_same = digest_of(folder / "site") == digest_of(folder / "whole")
        files = sum(1 for path in (folder / "whole" / "files").rglob("*") if path.is_file())
        print(f"the sites are {'the same' if is_same else 'DIFFERENT'}; {files:,} files")
    is_bounded = max(whole.peak_mb, again.peak_mb) - first.peak_mb <= given.more
    return 0 if is_bounded and is_same and kept.get("files") == files and kept.get("pages", 0) > 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
