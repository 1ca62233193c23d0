"""The cost of a page view in this checkout and in an older one: CPU of wiki and store, and calls of the store.

    python -m tests.measure.wiki_views --old FOLDER [--pages 200] [--views 400] [--rounds 8]

Each checkout has a store with the same synthetic pages and a wiki with one process.  Rounds take turns: so many views
of the old one, of the new one, and of both by somebody who is signed in, if the old one has accounts; the median round
counts.  Fails if an anonymous view costs more than --anonymous times the old one's, a signed-in view more than
--signed-in times the old one's signed-in view (its anonymous one, if it has no accounts), or if an anonymous view calls
the store more often.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parents[2]))

from gauge.processes import cpu_s_of
from tests.measure.wiki_import import HERE, Checkout, _run, _wait_for_triggers
from tests.support.ports import free_port

PASSWORD = "correct horse battery"
# Counts calls of the store in a process of the checkout itself, by the client's own requests.
COUNTING = """
import collections, json, sys
from thriftpy2.thrift import TClient
calls = collections.Counter()
request = TClient._req
def counted(self, api, *given, **named):
    calls[api] += 1
    return request(self, api, *given, **named)
TClient._req = counted
try:
    from columnar.client.store_link import StoreClient
except ModuleNotFoundError:  # of a client that does not route
    pass
else:
    send = StoreClient.send_call
    def sent(self, method, args):
        calls[method] += 1
        return send(self, method, args)
    StoreClient.send_call = sent
from werkzeug.test import Client
from wikka_port.app import make_application
from wikka_port.config import WikiConfig
from wikka_port.pages import Wiki
wiki = Wiki("127.0.0.1", int(sys.argv[1]))
web = Client(make_application(wiki, WikiConfig(secret=b"s" * 32)))
paths = json.loads(sys.argv[2])
assert all(web.get(path).status_code == 200 for path in paths), paths
calls.clear()
for path in paths:
    web.get(path)
print(json.dumps(calls))
"""


@dataclass
class Running:
    checkout: Checkout
    store_port: int
    store: int  # process
    wiki: int
    address: str
    cookie: str = ""
    rounds: list[tuple[float, float]] = field(default_factory=list)  # CPU ms a view: wiki, store

    def ask(self, connection: http.client.HTTPConnection, path: str) -> bytes:
        connection.request("GET", path, headers={"Cookie": self.cookie} if self.cookie else {})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status}")
        return body

    def view(self, paths: list[str], views: int) -> None:
        """Make one round of views."""
        before = self._cpu()
        connection = http.client.HTTPConnection(self.address, timeout=30)
        for number in range(views):
            self.ask(connection, paths[number % len(paths)])
        connection.close()
        wiki, store = (1_000 * (after - then) / views for after, then in zip(self._cpu(), before, strict=True))
        self.rounds.append((wiki, store))

    def _cpu(self) -> tuple[float, float]:
        wiki, store = cpu_s_of([self.wiki, self.store])  # with the processes that they started
        return wiki, store

    def median_ms(self) -> tuple[float, float]:
        return statistics.median(wiki for wiki, _ in self.rounds), statistics.median(store for _, store in self.rounds)


@contextmanager
def running(checkout: Checkout, pages: int, folder: Path) -> Iterator[Running]:
    with checkout.store(folder / "data") as (port, pid):
        store = ["--store", f"127.0.0.1:{port}"]
        _run(checkout, ["wikka_port", "synth", "--pages", str(pages), *store])
        _wait_for_triggers(port)
        serve = ["wikka_port", "serve", *store, "--port", str(free_port()), "--workers", "1", "--edits-per-minute", "0"]
        command = checkout.command(*serve, "--secret-file", str(folder / "secret"))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **checkout.options()) as process:  # type: ignore[call-overload]
            try:
                line = process.stdout.readline()
                if not line.startswith("wikka ready "):
                    raise SystemExit(f"the wiki of {checkout.name} did not start: {line!r}")
                yield Running(checkout, port, pid, process.pid, urlsplit(line.split()[2]).netloc)
            finally:
                process.terminate()
                process.wait()


def signed_in(of: Running) -> Running | None:
    """Return the same wiki as seen by a person who is signed in, or None if it has no accounts."""
    connection = http.client.HTTPConnection(of.address, timeout=30)
    connection.request("GET", "/-/register")
    answer = connection.getresponse()
    form, cookie = answer.read().decode(), (answer.headers["Set-Cookie"] or "").partition(";")[0]
    if answer.status == 404 or not cookie:  # an old wiki shows a page of that name
        return None
    token = re.search('name="csrf" value="([^"]*)"', form)
    assert token is not None, "the form has a token"
    fields = urlencode({"csrf": unescape(token[1]), "user": "Ada", "password": PASSWORD})
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/-/register", fields, headers)
    answer = connection.getresponse()
    answer.read()
    given = [one.partition(";")[0] for one in answer.headers.get_all("Set-Cookie") or []]
    if answer.status != 303 or not any(one.startswith("wikka_session=") for one in given):
        raise SystemExit(f"nobody could register: {answer.status}")
    seen = Running(of.checkout, of.store_port, of.store, of.wiki, of.address, "; ".join(given))
    assert b'class="me"' in seen.ask(connection, "/-/pageindex"), "it is signed in"
    return seen


def calls_of(of: Running, paths: list[str]) -> dict[str, int]:
    _, said = _run(of.checkout, ["-c", COUNTING, str(of.store_port), json.dumps(paths)])
    counted: dict[str, int] = json.loads(said)
    return counted


def addresses(of: Running, most: int) -> list[str]:
    connection = http.client.HTTPConnection(of.address, timeout=30)
    names = of.ask(connection, "/api/titles").decode().split("\n")
    chosen = [name for name in names if name][:: max(1, len(names) // most)][:most]
    return ["/" + name.replace(" ", "_") for name in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, required=True, help="the other checkout, with an environment in .venv")
    parser.add_argument("--pages", type=int, default=200, help="synthetic pages")
    parser.add_argument("--views", type=int, default=400, help="of each round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--anonymous", type=float, default=1.05, help="times the CPU of the old one, at most")
    parser.add_argument("--signed-in", type=float, default=1.2)
    given = parser.parse_args()
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="columnar-views-"))) for _ in "12"]
        checkouts = Checkout("old", given.old.resolve()), Checkout("new", HERE)
        old, new = (
            stack.enter_context(running(one, given.pages, folder))
            for one, folder in zip(checkouts, folders, strict=True)
        )
        paths = addresses(old, 40)
        compared = [Compared("new", new, old, given.anonymous)]
        person, earlier = signed_in(new), signed_in(old)
        assert person is not None, "this checkout has accounts"
        compared.append(Compared("new, signed in", person, earlier or old, given.signed_in))
        seen = list({id(one): one for pair in compared for one in (pair.old, pair.new)}.values())
        for one in seen:  # documents are parsed once
            one.view(paths, len(paths))
            one.rounds.clear()
        for number in range(given.rounds):  # each is the first in turn
            for one in seen[number % len(seen) :] + seen[: number % len(seen)]:
                one.view(paths, given.views)
        wrong = [*costlier(compared), *more_calls(old, new, paths)]
        raise SystemExit("; ".join(wrong) or None)


@dataclass
class Compared:
    label: str
    new: Running
    old: Running
    most: float  # times the old one's CPU


def costlier(compared: list[Compared]) -> list[str]:
    """Print the CPU of each pair; return those that are over their bound."""
    wrong = []
    for pair in compared:
        before = sum(pair.old.median_ms())
        for label, one in (("old of " + pair.label, pair.old), (pair.label, pair.new)):
            wiki, store = one.median_ms()
            times = (wiki + store) / before
            both = f"wiki {wiki:.3f}  store {store:.3f}  together {times:.3f} of the old one's"
            print(f"{label:21} CPU ms a view: {both}")
        if times > pair.most:
            wrong.append(f"{pair.label}: {times:.3f} times the CPU, {pair.most} at most")
    return wrong


def more_calls(old: Running, new: Running, paths: list[str]) -> list[str]:
    """Print the calls of the store a view of both; return a line if they have become more."""
    counted = {one.checkout.name: calls_of(one, paths) for one in (old, new)}
    for name, calls in counted.items():
        shown = ", ".join(f"{method} {count / len(paths):.2f}" for method, count in sorted(calls.items()))
        print(f"{name:21} calls of the store a view: {shown}")
    more = sum(counted["new"].values()) > sum(counted["old"].values())
    return ["an anonymous view calls the store more often than it did"] if more else []


if __name__ == "__main__":
    main()
