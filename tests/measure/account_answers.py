"""The times of sign-in, reset and registration for known and unknown accounts, which must not reveal known accounts.

    python -m tests.measure.account_answers [--times 120]

Starts a store and a wiki with Argon2id as in service, and sends requests for existing and missing accounts in a random
order.  Prints the medians; fails if they differ by 5 % or more, or if the answers differ.
"""

from __future__ import annotations

import argparse
import http.client
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from tests.measure.wiki_import import HERE, Checkout, _run
from tests.support.ports import free_port

MOST: Final = 0.05
PASSWORD: Final = "correct horse battery"
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Visitor:
    """A browser whose every request is from a different network, so that no limit of attempts is met."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=60)
        self._cookie = ""
        self._requests = 0

    def token(self, path: str) -> str:
        answer, text = self._ask("GET", path, None)
        for one in answer.headers.get_all("Set-Cookie") or []:
            self._cookie = one.partition(";")[0]
        found = re.search('name="csrf" value="([^"]*)"', text)
        if found is None:
            raise SystemExit(f"{path} has no form: {answer.status}")
        return unescape(found[1])

    def post(self, path: str, fields: dict[str, str]) -> tuple[float, int, str]:
        """Post a form; return seconds, status, and the text without the typed values."""
        began_s = time.perf_counter()
        answer, text = self._ask("POST", path, urlencode(fields))
        took_s = time.perf_counter() - began_s
        text = re.sub('name="csrf" value="[^"]*"', "", text)
        for typed in fields.values():
            text = text.replace(typed, "") if typed else text
        return took_s, answer.status, text

    def _ask(self, method: str, path: str, body: str | None) -> tuple[http.client.HTTPResponse, str]:
        self._requests += 1
        network = f"10.{self._requests // 65536 % 256}.{self._requests // 256 % 256}.{self._requests % 256}"
        self._connection.request(method, path, body, {**FORM, "Cookie": self._cookie, "X-Forwarded-For": network})
        answer = self._connection.getresponse()
        return answer, answer.read().decode()


@contextmanager
def wiki(folder: Path, accounts: int) -> Iterator[str]:
    """Yield the address of a wiki with accounts Known0, Known1 and so on."""
    checkout = Checkout("new", HERE)
    with checkout.store(folder / "data") as (port, _):
        store = ["--store", f"127.0.0.1:{port}"]
        _run(checkout, ["wikka_port", "prepare", *store])
        _run(checkout, ["-c", ACCOUNTS, str(port), str(accounts), PASSWORD])
        serve = ["wikka_port", "serve", *store, "--port", str(free_port()), "--workers", "1", "--proxies", "1"]
        command = checkout.command(*serve, "--secret-file", str(folder / "secret"), *MAIL)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **checkout.options()) as process:  # type: ignore[call-overload]
            try:
                line = process.stdout.readline()
                if not line.startswith("wikka ready "):
                    raise SystemExit(f"the wiki did not start: {line!r}")
                yield urlsplit(line.split()[2]).netloc
            finally:
                process.terminate()
                process.wait()


# A server that takes no mail: what is sent later is no part of the answer.
MAIL: Final = (
    "--smtp",
    "127.0.0.1:9",
    "--smtp-tls",
    "none",
    "--mail-from",
    "wiki@wiki.example",
    "--public-url",
    "https://wiki.example",
)
ACCOUNTS: Final = """
import sys, time
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.passwords import Passwords
from wikka_port.pages import Wiki
directory = Directory(Wiki("127.0.0.1", int(sys.argv[1])).rows, lambda: int(time.time() * 1000))
hashed = Passwords(1).hashed(sys.argv[3])
for number in range(int(sys.argv[2])):
    directory.make(f"Known{number}", status="active", password=hashed, email=f"known{number}@mail.example")
"""


def measure(visitor: Visitor, kind: str, times: int) -> tuple[list[float], list[float], set[tuple[int, str]]]:
    """Return the seconds for existing accounts, for missing ones, and the answers."""
    path = f"/-/{kind}"
    token = visitor.token(path)
    took: dict[bool, list[float]] = {True: [], False: []}
    answers = set()
    order = [known for known in (True, False) for _ in range(times)]
    random.Random(1).shuffle(order)
    for number, known in enumerate(order):
        name = f"{'Known' if known else 'Other'}{number % times}"
        fields = {"csrf": token, "user": name, "password": "a wrong password", "email": f"{name.lower()}@mail.example"}
        if kind == "register":
            fields["user"] = f"Fresh{'Ka' if known else 'Kb'}{number}"  # the address is known, or not
        seconds, status, text = visitor.post(path, fields)
        took[known].append(seconds)
        answers.add((status, text))
    return took[True], took[False], answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=120, help="of each, known and unknown")
    times = parser.parse_args().times
    wrong = []
    with tempfile.TemporaryDirectory(prefix="columnar-answers-") as folder, wiki(Path(folder), times) as address:
        for kind in ("login", "reset", "register"):
            known, unknown, answers = measure(Visitor(address), kind, times)
            middle = statistics.median(known) * 1_000, statistics.median(unknown) * 1_000
            apart = abs(middle[0] - middle[1]) / min(middle)
            print(f"{kind:9} known {middle[0]:.2f} ms, unknown {middle[1]:.2f} ms: {apart:.1%} apart", flush=True)
            if apart >= MOST or len(answers) != 1:
                wrong.append(f"{kind}: {apart:.1%} apart, {len(answers)} answers")
    raise SystemExit("; ".join(wrong) or None)


if __name__ == "__main__":
    main()
