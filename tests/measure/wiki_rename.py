"""The rename of a page with many revisions and many links to it: its time, and the links that are left.

    python -m tests.measure.wiki_rename --revisions 10000 --links 500

Starts a store with an empty folder, saves the page and the pages that link to it, and waits for the triggers.  Then:

    page     the rename itself, until both names answer as they should
    links    the edits that lead the links of the others to the new name, and how many links to the old one are left
    kills    a rename of another page dies by kill -9 at each step; the next start finishes it

Fails if the page takes longer than --most seconds, a link dangles, or ``wikka check`` finds a difference.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.standalone_store import ENVIRONMENT, ROOT, StoreProcess
from wikka_port.bulk_save import BulkSaver
from wikka_port.consistency import check
from wikka_port.import_plan import ImportedRevision, PagePart
from wikka_port.moving.jobs import LINKS, Jobs, Progress, new_job
from wikka_port.moving.mass import linking
from wikka_port.moving.runner import resume, work
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.visitors import COMMAND, OPERATOR

STEPS: Final = ("intent", "mark", "arrive", "leave", "moved", "settle", "done")
OLD, NEW = "Much edited", "Renamed/page"
FLAGS: Final = ("--trigger-modules", "wikka_port.triggers")
PART: Final = 500  # revisions handed over together
_FIRST_MS: Final = 1_600_000_000_000


def parts(revisions: int, links: int) -> Iterator[PagePart]:
    for first in range(1, revisions + 1, PART):
        last = min(first + PART - 1, revisions)
        texts = tuple(_revision(number, "Ann", f"text {number}\n" * 20, 0) for number in range(first, last + 1))
        yield PagePart(OLD, 0, first, texts, "", last == revisions)
    text = f"One of many, see [[{OLD}]] and [[{OLD}|it]], not %%[[{OLD}]]%%."
    for number in range(links):
        yield PagePart(f"Linking {number}", number + 1, 1, (_revision(1, "Bob", text, 1),), "", True)


def _revision(number: int, author: str, body: str, links: int) -> ImportedRevision:
    return ImportedRevision(_FIRST_MS + number * 1_000, author, f"step {number}", body, links, False)


def filled(wiki: Wiki, revisions: int, links: int) -> None:
    with BulkSaver(wiki, lambda _mark: None) as saver:
        for mark, part in enumerate(parts(revisions, links)):
            saver.put([part], mark)
            if part.name == OLD:
                saver.drain()  # parts of one page follow each other
        saver.drain()
    settled(wiki)


def settled(wiki: Wiki) -> float:
    begun = time.monotonic()
    while not wiki.settle("", 5.0):
        assert time.monotonic() - begun < 600, "the triggers do not come to an end"
    return time.monotonic() - begun


def renamed(wiki: Wiki) -> float:
    begun = time.monotonic()
    GuardedWiki(wiki, OPERATOR).moves.rename(OLD, NEW, redirect=True)
    new, old = wiki.page(NEW), wiki.page(OLD)
    taken = time.monotonic() - begun
    assert new is not None
    assert old is not None
    assert old.body.startswith("#REDIRECT")
    return taken


def led(wiki: Wiki) -> tuple[Progress, float]:
    names = [one for one in linking(wiki, OLD) if one != OLD]
    job = new_job(LINKS, COMMAND, "wiki", source=OLD, target=NEW)
    begun = time.monotonic()
    Jobs(wiki.rows, clock_ms).begin(job, names)
    progress = work(wiki, job)
    return progress, time.monotonic() - begun


def killed_at_each_step(wiki: Wiki, port: int) -> int:
    for step in STEPS:
        wiki.save(f"Page {step}", "text", author="Ann", base=0)
        words = [str(port), "triggers", step, f"Page {step}", f"New {step}"]
        child = [sys.executable, "-m", "tests.support.falling_mover", *words]
        assert subprocess.run(child, env=ENVIRONMENT, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    resume(wiki)
    return sum(wiki.page(f"New {step}") is not None for step in STEPS)


def differences(wiki: Wiki) -> int:
    settled(wiki)
    return len(check(wiki, settle=lambda: settled(wiki)).differences)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revisions", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=500)
    parser.add_argument("--most", type=float, default=2.0, help="seconds for the page itself")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, StoreProcess(Path(folder) / "data", *FLAGS) as store:
        wiki = Wiki("127.0.0.1", store.port)
        wiki.prepare()
        filled(wiki, given.revisions, given.links)
        page_s = renamed(wiki)
        indexes_s = settled(wiki)
        print(f"page    {page_s:.3f} s for {given.revisions:,} revisions; indexes complete {indexes_s:.1f} s later")
        progress, links_s = led(wiki)
        settled(wiki)
        dangling = [one for one in wiki.backlinks(OLD) if one != OLD]
        held = wiki.revisions(NEW, limit=given.revisions + 1)
        counts = f"{len(progress.left)} left as they are, {len(dangling)} dangle"
        print(f"links   {len(progress.done):,} pages in {links_s:.1f} s, {counts}")
        finished = killed_at_each_step(wiki, store.port)
        print(f"kills   {finished} of {len(STEPS)} finished at the next start")
        found = differences(wiki)
        print(f"check   {found} differences; {len(held):,} revisions of {NEW}")
        wiki.store.close()
    is_good = page_s < given.most and not dangling and finished == len(STEPS) and not found
    return 0 if is_good and len(held) == given.revisions else 1


if __name__ == "__main__":
    raise SystemExit(main())
