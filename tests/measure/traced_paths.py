"""The cost of six code paths to a reader: calls, modules, and returns to modules that the path had left.

    python -m tests.measure.traced_paths [--rounds 7]

A store in this process, its sources interpreted.  Each path is walked ROUNDS times after it is warm; the walk with the
fewest calls counts, since timers of the loop fall into some.

    calls      of functions of ours
    modules    that they lie in
    hops       calls of a function of another module
    returns    hops to a module that the path has left before: hops less the first entry of each module
    both ways  pairs of modules that call each other
    work       a function that is called most often, and how often
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

if __name__ == "__main__":
    os.environ["COLUMNAR_COMPILED"] = "no"  # compiled functions are not traced

from columnar.client import Put
from columnar.model.view_definition import Source, View
from tests.measure import flow_functions
from tests.support.serving import Serving
from wikka_port.pages import Wiki

PACKAGES: Final = ("columnar.", "wikka_port.")
MODULES: Final = (flow_functions.__name__, "wikka_port.triggers")


@dataclass
class Walk:
    """The calls of one thread while it is traced."""

    calls: int = 0
    hops: int = 0
    modules: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    functions: Counter[str] = field(default_factory=Counter)

    def hook(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call":
            return
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(PACKAGES) or frame.f_code.co_name in ("<genexpr>", "<listcomp>", "<lambda>"):
            return
        self.calls += 1
        self.modules.add(module)
        self.functions[f"{module.partition('.')[2]}.{frame.f_code.co_qualname}"] += 1
        caller = _caller(frame)
        if caller is not None and caller != module:
            self.hops += 1
            self.pairs.add((caller, module))

    @property
    def returns(self) -> int:
        return self.hops - (len(self.modules) - 1)

    @property
    def both_ways(self) -> int:
        return sum((to, of) in self.pairs for of, to in self.pairs) // 2


def _caller(frame: FrameType) -> str | None:
    above = frame.f_back
    while above is not None:
        module = above.f_globals.get("__name__", "")
        if module.startswith(PACKAGES):
            return str(module)
        above = above.f_back
    return None


@contextmanager
def watched_here() -> Iterator[Walk]:
    walk = Walk()
    sys.setprofile(walk.hook)
    try:
        yield walk
    finally:
        sys.setprofile(None)


class Paths:
    """The six paths over one store; each has a function that runs it once, and a check that its after-effects ended."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self.connection = serving.connect()
        self._number = 0
        for table in ("plain", "followed", "derived", "source"):
            self.connection.create_table(table, {"f": {}})
        with self.connection.table("plain").batch() as batch:
            for number in range(500):
                batch.put(b"row%04d" % number, {b"f:a": b"v"})
        self.connection.triggers.add("one", b"followed", f"{flow_functions.__name__}:one", [b"f"])
        self.connection.views.add(View("by_a", Source("source", key=("f:a",), sums={"size": "f:size"})))
        assert self.connection.views.wait("by_a", timeout_ms=60_000)

    def put(self) -> None:
        self.connection.table("plain").put(b"row0001", {b"f:a": b"w"})

    def get(self) -> None:
        self.connection.table("plain").row(b"row0001")

    def scan(self) -> None:
        assert len(list(self.connection.table("plain").scan(batch_size=50, limit=50))) == 50

    def deliver(self) -> None:
        self._number += 1
        self.connection.table("followed").put(b"row", {b"f:a": b"%d" % self._number})
        self._await_followers()

    def keep(self) -> None:
        self._number += 1
        self.connection.table("source").mutate(b"row", [Put(b"f:a", b"g"), Put(b"f:size", b"%d" % self._number)])
        self._await_followers()

    def _await_followers(self) -> None:
        while not self._is_at_rest():
            time.sleep(0.02)  # nothing that is traced may tell

    def _is_at_rest(self) -> bool:
        """Return whether every follower has delivered all changes; makes no counted call."""

        def rests() -> bool:
            hook = sys.getprofile()
            sys.setprofile(None)
            try:
                hub = self._serving.store.serving.trigger_manager.hub
                followers = [one for region in self._serving.store.serving.server.all_open()
                             for one in hub.followers.in_region(region)]  # fmt: skip
                return all(one.is_idle for one in followers)
            finally:
                sys.setprofile(hook)

        return self._serving.do(rests)

    def walk(self, path: Callable[[], None]) -> Walk:
        walk = Walk()
        self._serving.do(lambda: sys.setprofile(walk.hook))
        try:
            path()
        finally:
            self._serving.do(lambda: sys.setprofile(None))
        return walk


def save_page(wiki: Wiki, number: int) -> Walk:
    with watched_here() as walk:
        wiki.save("TracedPage", f"Text {number} with [[OtherPage]].", author="Ada", base=number)
    return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{'path':10}{'calls':>8}{'modules':>9}{'hops':>7}{'returns':>9}{'both ways':>11}  most often")
    with tempfile.TemporaryDirectory() as folder:
        serving = Serving(Path(folder) / "data", trigger_modules=MODULES).start()
        try:
            paths = Paths(serving)
            for name in ("put", "get", "scan", "deliver", "keep"):
                path = getattr(paths, name)
                for _ in range(3):
                    path()
                say(name, min((paths.walk(path) for _ in range(rounds)), key=lambda one: one.calls))
            wiki = Wiki("127.0.0.1", serving.store.port, pool=2, indexes="triggers")
            wiki.prepare()
            walks = [save_page(wiki, number) for number in range(rounds + 3)][3:]
            say("save", min(walks, key=lambda one: one.calls))
            wiki.store.close()
        finally:
            serving.stop()


def say(name: str, walk: Walk) -> None:
    often, count = walk.functions.most_common(1)[0]
    figures = f"{walk.calls:8,}{len(walk.modules):9}{walk.hops:7,}{walk.returns:9,}{walk.both_ways:11}"
    print(f"{name:10}{figures}  {count:,} {often}")


if __name__ == "__main__":
    main()
