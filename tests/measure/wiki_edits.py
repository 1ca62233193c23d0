"""Edits by ``wikibench replay --map`` on the real MediaWiki and DokuWiki, from Debian's packages, without root.

    mkdir packages && cd packages
    apt-get download mediawiki mediawiki-classes dokuwiki php-geshi libphp-simplepie php-phpseclib php-random-compat \\
        php-common php8.2-common php8.2-cli php8.2-opcache php8.2-sqlite3 php8.2-xml php8.2-mbstring php8.2-intl
    for deb in *.deb; do dpkg -x $deb root; done
    python -m tests.measure.wiki_edits packages/root [--wiki mediawiki] [--wiki dokuwiki]

Each wiki is made in a folder of its own (MediaWiki on SQLite), with three users, and served by PHP's own server with
four processes on loopback.  Two traces are replayed: views and edits of some pages, and twelve edits of one page at
once.  The second must have conflicts; fails if the first has a failure, or if no edit was saved.  Takes a minute.

MediaWiki saves of the second trace may be ``broken``: SQLite has one writer.  DokuWiki locks the page that somebody
edits, and now and then shows a form only for reading without saying so, if the lock ends at that moment.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.ports import free_port

PASSWORD = "Replay-pass-60"
USERS = ("Ann", "Ben", "Cid")
EXTENSIONS = (
    "ctype", "dom", "fileinfo", "iconv", "intl", "mbstring", "pdo", "pdo_sqlite", "phar", "posix", "simplexml",
    "sqlite3", "tokenizer", "xml", "xmlreader", "xmlwriter",
)  # fmt: skip
READY_S = 30.0
WORKERS = 4
LOCAL = """<?php
$conf['title'] = 'Edits'; $conf['savedir'] = './data'; $conf['useacl'] = 1; $conf['superuser'] = '@admin';
"""


class Packages:
    """The unpacked packages, and a folder of this run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root.resolve()
        self.folder = folder
        (folder / "sessions").mkdir()

    def php(self, *words: str) -> list[str]:
        modules = next((self.root / "usr/lib/php").glob("20*"))
        given = {"extension_dir": modules, "zend_extension": modules / "opcache.so"}
        given["session.save_path"] = self.folder / "sessions"
        program = next((self.root / "usr/bin").glob("php8*"))
        named = [f"extension={name}" for name in EXTENSIONS] + [f"{name}={value}" for name, value in given.items()]
        return [str(program), "-n", *(word for one in named for word in ("-d", one)), *words]

    def run(self, *words: str) -> str:
        return subprocess.run(self.php(*words), check=True, capture_output=True, text=True).stdout

    @contextmanager
    def served(self, site: Path, port: int) -> Iterator[str]:
        env = {**os.environ, "PHP_CLI_SERVER_WORKERS": str(WORKERS)}
        words = self.php("-S", f"127.0.0.1:{port}", "-t", str(site))
        with (self.folder / f"{site.name}.log").open("w") as log:
            server = subprocess.Popen(words, cwd=site, env=env, stdout=log, stderr=log, start_new_session=True)
            try:
                url = f"http://127.0.0.1:{port}"
                _wait_until_ready(url)
                yield url
            finally:
                os.killpg(server.pid, signal.SIGTERM)
                server.wait()


def _wait_until_ready(url: str) -> None:
    ends = time.monotonic() + READY_S
    while time.monotonic() < ends:
        try:
            urllib.request.urlopen(url, timeout=READY_S).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{url} did not answer within {READY_S:g} s")


def make_mediawiki(packages: Packages, port: int) -> Path:
    site = packages.folder / "mediawiki"
    shutil.copytree(packages.root / "usr/share/mediawiki", site, symlinks=True)
    for name in ("LocalSettings.php", "images", "extensions", "config"):
        (site / name).unlink(missing_ok=True)  # they lead into /etc and /var of an installed package
    for name in ("images", "extensions", "config", "data"):
        (site / name).mkdir()
    install = str(site / "maintenance/install.php")
    packages.run(
        install, "--dbtype", "sqlite", "--dbpath", str(site / "data"), "--pass", PASSWORD, "--scriptpath", "",
        "--server", f"http://127.0.0.1:{port}", "--confpath", str(site), "Edits", "Admin",
    )  # fmt: skip
    for user in USERS:
        packages.run(str(site / "maintenance/createAndPromote.php"), user, PASSWORD)
    return site


def make_dokuwiki(packages: Packages, port: int) -> Path:
    del port
    site, root = packages.folder / "dokuwiki", packages.root
    shutil.copytree(root / "usr/share/dokuwiki", site, symlinks=True)
    for name in ("lib/plugins", "lib/tpl", "inc/preload.php", ".htaccess"):
        (site / name).unlink(missing_ok=True)
    for name in ("plugins", "tpl"):
        shutil.copytree(root / "var/lib/dokuwiki/lib" / name, site / "lib" / name, symlinks=True)
    shutil.copytree(root / "etc/dokuwiki", site / "conf", symlinks=True)
    shutil.copytree(root / "var/lib/dokuwiki/data", site / "data", symlinks=True)
    libraries = packages.folder / "php"
    shutil.copytree(root / "usr/share/php", libraries, symlinks=True)
    for path in (*site.rglob("*.php"), *libraries.rglob("*.php")):
        if path.is_file() and b"'/usr/share/php" in (text := path.read_bytes()):
            path.write_bytes(text.replace(b"'/usr/share/php", f"'{libraries}".encode()))
    hashed = packages.run("-r", f"echo password_hash('{PASSWORD}', PASSWORD_BCRYPT);")
    lines = [f"{user.lower()}:{hashed}:{user}:{user.lower()}@example.org:user" for user in USERS]
    for name, text in (
        ("local.php", LOCAL),
        ("acl.auth.php", "* @ALL 1\n* @user 8\n"),
        ("users.auth.php", "\n".join(lines) + "\n"),
    ):
        (site / "conf" / name).unlink(missing_ok=True)
        (site / "conf" / name).write_text(text)
    return site


WIKIS = {"mediawiki": make_mediawiki, "dokuwiki": make_dokuwiki}


def wikibench(*words: object) -> subprocess.CompletedProcess[str]:
    program = (sys.executable, "-c", "from wikibench.cli import main; main()")
    return subprocess.run([*program, *map(str, words)], capture_output=True, text=True, check=False)


def outcomes_of(trace: Path, url: str, name: str, users: Path, out: Path) -> dict[str, dict[str, int]]:
    given = ("--map", name, "--users", users, "--expect-404", "--lateness", "60s", "--report", out)
    found = wikibench("replay", trace, "--target", url, *given)
    if not (out / "report.json").exists():
        raise SystemExit(f"{name}: {found.stdout}{found.stderr}")
    report = json.loads((out / "report.json").read_text())
    found: dict[str, dict[str, int]] = {}
    for row in report["by_kind_and_outcome"]:
        found.setdefault(row["kind"], {})[row["outcome"]] = row["response_time"]["count"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--wiki", action="append", choices=WIKIS)
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="wiki-edits-") as folder:
        packages = Packages(given.root, Path(folder))
        titles, users, day, busy = (Path(folder) / name for name in ("titles", "users.csv", "day.trace", "busy.trace"))
        titles.write_text("".join(f"Page number {n}\n" for n in range(12)))
        busy.write_text("".join(f"{n} {1190146243 + n * 0.03:.3f} http://w/Busy_page save\n" for n in range(12)))
        wikibench("synth", "--titles", titles, "--out", day, "--requests", 40, "--rate", 4, "--edits", "30%")
        for name in given.wiki or WIKIS:
            users.write_text("".join(f"{user if name == 'mediawiki' else user.lower()},{PASSWORD}\n" for user in USERS))
            port = free_port()
            site = WIKIS[name](packages, port)
            with packages.served(site, port) as url:
                for trace in (day, busy):
                    found = outcomes_of(trace, url, name, users, Path(folder) / f"{name}-{trace.stem}")
                    print(f"{name:10} {trace.stem:5} {json.dumps(found)}", flush=True)
                    saves = found.get("edit-save", {})
                    failed |= not saves.get("3xx") or (trace is day and bool(set(saves) - {"3xx", "conflict"}))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
