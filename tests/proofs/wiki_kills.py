"""python -m tests.proofs.wiki_kills --kills 50: store, trigger worker and wiki are killed while people edit.

    store        kill -9 of the whole store, started again
    worker       kill -9 of its trigger worker
    wiki         kill -9 of the process that watches over the wiki's, started again at the same port
    wiki worker  kill -9 of a process that serves pages

Editors send forms over HTTP, each to pages of its own that link to each other's.  A mover renames, deletes and brings
back pages.  Each target is killed in turn, in a random order.  After the last kill:

    1  each line whose save was answered stands in its page, once
    2  each page that was moved is where the answered move put it
    3  each such line is found by a search for its word
    4  ``wikka check`` finds no difference in any derived table: at most texts that saves staged which were cut off
       before anybody saw them, and a repair removes those

The exit status is 0 if all of this holds.  The seed decides targets, moments and edits; the progress of the editors at
each kill depends on the machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from random import Random
from typing import Final

import click
import requests
from rich.console import Console
from rich.table import Table

from tests.proofs.killed_store import quiet_port
from tests.proofs.verdict import end_report
from tests.support.cluster_process import children
from tests.support.standalone_store import ENVIRONMENT, StoreProcess
from wikka_port import schema
from wikka_port.moving.mover import By
from wikka_port.moving.refusals import NotMoved
from wikka_port.pages import StoreUnavailable, Wiki
from wikka_port.search.query import parse

VICTIMS: Final = ("store", "worker", "wiki", "wiki worker")
PAGES_EACH: Final = 5  # of an editor
LINES_MOST: Final = 400  # of a page: then it begins anew
READY_S: Final = 60.0
SETTLE_S: Final = 60.0
MOVES_BY: Final = By("Mover", "account", "to see what becomes of it")
_HIDDEN: Final = re.compile('type="hidden" name="(\\w+)" value="([^"]*)"')
_OFTEN: Final = 0.05  # seconds between two questions to a wiki that is away
_SEARCHED: Final = 300  # words, of those written last


@dataclass
class Found:
    shots: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class WikiProcess:
    """``wikka serve`` at a port that it keeps over restarts."""

    def __init__(self, store_port: int, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = (folder / "wiki.log").open("a", encoding="utf-8")
        self._command = [sys.executable, "-m", "wikka_port", "serve", "--store", f"127.0.0.1:{store_port}"]
        self._command += ["--port", str(port), "--edits-per-minute", "0", "--secret-file", str(folder / "secret")]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=ENVIRONMENT
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("wikka ready"):
            raise click.ClickException(f"the wiki did not start: {line!r}; {Path(self._log.name).read_text()[-600:]}")

    def shoot(self) -> None:
        """Kill the first process, wait until its workers have ended, and start the wiki again."""
        assert self._process is not None
        workers = self.workers()
        self._process.kill()
        self._process.wait()
        deadline = time.monotonic() + READY_S
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            if time.monotonic() > deadline:
                raise click.ClickException(f"processes {workers} of a wiki that was killed live on")
            time.sleep(_OFTEN)
        self.start()

    def workers(self) -> list[int]:
        assert self._process is not None
        return children(self._process.pid)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(READY_S)
        self._log.close()


class Editor:
    """An editor that adds lines to its pages, and sends a line again if its answer was lost and the page lacks it."""

    def __init__(self, number: int, url: str, others: int, seed: int, over: threading.Event) -> None:
        self.lines: dict[str, list[str]] = {f"Page {number} {page}": [] for page in range(PAGES_EACH)}
        self.counts: Counter[str] = Counter()
        self._url = url
        self._rng = Random(f"editor {number} of {seed}")
        self._number = number
        self._others = others
        self._over = over
        self._web = requests.Session()

    def run(self) -> None:
        serial = 0
        while not self._over.is_set():
            name = self._rng.choice(list(self.lines))
            link = f"Page {self._rng.randrange(self._others)} {self._rng.randrange(PAGES_EACH + 2)}"
            line = f"line e{self._number}n{serial}z and [[{link}]]"
            if len(self.lines[name]) >= LINES_MOST:
                self.lines[name] = []
            self._add(name, line)
            serial += 1

    def _add(self, name: str, line: str) -> None:
        lines = [*self.lines[name], line]
        path = f"{self._url}/{name.replace(' ', '_')}"
        while True:
            try:
                if self._saved(path, "\n".join(lines)):
                    break
            except (requests.RequestException, _NotNow):
                self.counts["answers lost or refused"] += 1
                time.sleep(_OFTEN)
        self.counts["edits"] += 1
        self.lines[name] = lines

    def _saved(self, path: str, body: str) -> bool:
        """Return whether the page has this text now, by an answered save or by one whose answer was lost."""
        form = self._web.get(f"{path}/edit", timeout=READY_S)
        if form.status_code != 200:
            raise _NotNow
        held = self._web.get(f"{path}/raw", timeout=READY_S)
        if held.status_code not in (200, 404):
            raise _NotNow
        if held.status_code == 200 and held.text.replace("\r\n", "\n").strip() == body:
            self.counts["edits found done"] += 1
            return True
        fields = {name: unescape(value) for name, value in _HIDDEN.findall(form.text)}
        sent = {**fields, "body": body, "note": "", "save": "1"}
        answer = self._web.post(f"{path}/edit", data=sent, timeout=READY_S, allow_redirects=False)
        if answer.status_code >= 500:
            raise _NotNow
        return answer.status_code in (302, 303)


class _NotNow(Exception):
    """The wiki or its store is unavailable."""


class Mover:
    """A mover that makes and moves pages; a move whose answer was lost is finished by a later use of the journal."""

    def __init__(self, port: int, seed: int, over: threading.Event) -> None:
        self.there: dict[str, str] = {}  # what answered moves left: name and text
        self.counts: Counter[str] = Counter()
        self._wiki = Wiki("127.0.0.1", port)
        self._rng = Random(f"mover {seed}")
        self._over = over

    def run(self) -> None:
        serial = 0
        while not self._over.is_set():
            serial += 1
            try:
                self._one(serial)
            except StoreUnavailable:
                self.counts["moves lost"] += 1
                time.sleep(_OFTEN)
        self._wiki.store.close()

    def _one(self, serial: int) -> None:
        old, new, text = f"Old {serial}", f"New {serial}", f"moved m{serial}z [[Page 0 0]] [[Old {serial - 1}]]"
        self._wiki.save(old, text, author="Mover", base=0)
        kind = self._rng.choice(("rename", "move", "delete", "back"))
        try:
            if kind in ("rename", "move"):
                self._wiki.mover.rename(old, new, MOVES_BY, redirect=kind == "rename")
                self.there[new] = text
            else:
                gone = self._wiki.mover.delete(old, MOVES_BY)
                if kind == "back":
                    self._wiki.mover.undelete(old, gone.row, MOVES_BY, new=new)
                    self.there[new] = text
        except NotMoved as refused:  # somebody else finished it, or its start was lost
            self.counts[f"moves refused: {type(refused).__name__}"] += 1
        else:
            self.counts["moves"] += 1


class Ground:
    def __init__(self, folder: Path, seed: int, editors: int) -> None:
        self.found = Found()
        self._rng = Random(f"kills {seed}")
        self._over = threading.Event()
        self.store = StoreProcess(
            folder / "data",
            *("--trigger-modules", "wikka_port.triggers", "--log-level", "warning"),
            port=quiet_port(Random()),
        )
        self.wiki = WikiProcess(self.store.port, folder, quiet_port(Random()))
        self._folder = folder
        self._editors = [Editor(n, self.wiki.url, editors, seed, self._over) for n in range(editors)]
        self._mover = Mover(self.store.port, seed, self._over)

    def run(self, kills: int, every_s: float, tell: Callable[[int], None]) -> None:
        with self.store:
            self._prepare()
            self.wiki.start()
            try:
                self._shoot_at_work(kills, every_s, tell)
                self._look()
            finally:
                self.wiki.stop()

    def _prepare(self) -> None:
        wiki = Wiki("127.0.0.1", self.store.port)
        wiki.prepare()
        wiki.store.close()

    def _shoot_at_work(self, kills: int, every_s: float, tell: Callable[[int], None]) -> None:
        works = [*(one.run for one in self._editors), self._mover.run]
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        victims: list[str] = []
        try:
            for number in range(kills):
                time.sleep(every_s * self._rng.uniform(0.2, 1.8))  # the moment is the point
                if not victims:
                    victims = self._rng.sample(VICTIMS, len(VICTIMS))
                self._shoot(victims.pop())
                tell(number + 1)
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _shoot(self, victim: str) -> None:
        self.found.shots[victim] += 1
        if victim == "store":
            self.store.kill()
            self.store.start()
        elif victim == "worker":
            _kill(self.store.worker_pid())
        elif victim == "wiki":
            self.wiki.shoot()
        elif workers := self.wiki.workers():
            _kill(self._rng.choice(workers))

    # --- what is held ------------------------------------------------------------------------------

    def _look(self) -> None:
        wiki = Wiki("127.0.0.1", self.store.port)
        if not wiki.settle("", SETTLE_S):
            self.found.wrong.append(f"the triggers are not done after {SETTLE_S:.0f} s")
        self._look_at_pages(wiki)
        self._look_at_moves(wiki)
        self._search(wiki)
        wiki.store.close()
        self._check()

    def _look_at_pages(self, wiki: Wiki) -> None:
        for editor in self._editors:
            self.found.counts += editor.counts
            for name, lines in editor.lines.items():
                page = wiki.page(name)
                held = page.body.strip().split("\n") if page is not None else []
                if held != lines and (held or lines):
                    lacking = [line for line in lines if line not in held]
                    self.found.wrong.append(f"{name} has {len(held)} lines of {len(lines)}; it lacks {lacking[:3]}")

    def _look_at_moves(self, wiki: Wiki) -> None:
        self.found.counts += self._mover.counts
        for name, text in self._mover.there.items():
            page = wiki.page(name)
            if page is None or page.body != text:
                self.found.wrong.append(f"{name}, which was moved, is {page.body if page else 'no page'!r}")

    def _search(self, wiki: Wiki) -> None:
        written = [
            (line.split()[1], name) for one in self._editors for name, lines in one.lines.items() for line in lines
        ]
        written += [(text.split()[1], name) for name, text in self._mover.there.items()]
        for word, name in written[-_SEARCHED:]:
            self.found.counts["searches"] += 1
            hits = [hit.name for hit in wiki.search(parse(word)).hits]
            if hits != [name]:
                self.found.wrong.append(f"a search for {word} finds {hits}, not {name}")

    def _check(self) -> None:
        """Check that no derived table differs, and that a repair removes only the remains of cut-off saves."""
        found = self._differences()
        staged = [one for one in found if (one["table"], one["kind"]) == (schema.REVISIONS.decode(), "stale")]
        self.found.counts["saves cut off, whose texts are left"] = len(staged)
        self._differences("--repair")
        lasting = self._differences()
        for one in [one for one in found if one not in staged] + lasting:
            self.found.wrong.append(f"wikka check: {one}")

    def _differences(self, *flags: str) -> list[dict[str, str | None]]:
        command = [sys.executable, "-m", "wikka_port", "check", "--store", f"127.0.0.1:{self.store.port}", "--json"]
        ended = subprocess.run([*command, *flags], capture_output=True, text=True, env=ENVIRONMENT)
        if ended.returncode not in (0, 1):
            raise click.ClickException(f"wikka check ended with {ended.returncode}: {ended.stderr[-600:]}")
        found: list[dict[str, str | None]] = json.loads(ended.stdout)["differences"]
        return found


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, signal.SIGKILL)


def nobody_hears(_done: int) -> None:
    pass


def prove(
    folder: Path, *, kills: int, every_s: float, editors: int, seed: int, tell: Callable[[int], None] = nobody_hears
) -> Found:
    ground = Ground(folder, seed, editors)
    ground.run(kills, every_s, tell)
    return ground.found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--kills", default=50, show_default=True, type=click.IntRange(1))
@click.option("--kill-every", "every_s", default=2.0, show_default=True, help="Seconds, more or less.")
@click.option("--editors", default=4, show_default=True, type=click.IntRange(1, 32))
@click.option("--seed", default=1, show_default=True, help="Of all choices but the machine's own.")
def main(kills: int, every_s: float, editors: int, seed: int) -> None:
    """Shoot store, trigger worker and wiki while people edit, and look whether anything is lost or differs."""
    begun = time.monotonic()
    console, folder = Console(), Path(tempfile.mkdtemp(prefix="columnar-wiki-kills-"))
    with click.progressbar(length=kills, label="kills", file=sys.stderr) as bar:
        found = prove(
            folder, kills=kills, every_s=every_s, editors=editors, seed=seed, tell=lambda _done: bar.update(1)
        )
    table = Table(title=f"The wiki under kills, seed {seed}", title_justify="left", show_header=False)
    for name, count in found.shots.items():
        table.add_row(f"killed: {name}", f"{count:,}")
    for name, count in {**found.counts, "seconds": round(time.monotonic() - begun)}.items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    end_report(console, found.wrong, folder)


if __name__ == "__main__":
    main()
