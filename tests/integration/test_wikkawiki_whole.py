"""A WikkaWiki of 1,000 pages, moved by a command that is killed three times; a real server, and dumps that it wrote."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.support.cluster_process import until
from tests.support.deep import IS_DEEP
from tests.support.seeds import seed
from tests.support.sql_dumps import dump_of
from tests.support.store_thread import StoreThread
from tests.support.wikkawiki_database import Version, WikkaWiki, random_wiki
from wikka_port import schema
from wikka_port.accounts.passwords import Passwords
from wikka_port.accounts.tables import SITE, USERS
from wikka_port.commands.serving_options import accounts_of
from wikka_port.pages import Wiki
from wikka_port.wikkawiki.server_rows import ServerError, copied_from, parse_address
from wikka_port.wikkawiki.source_database import copied

pytestmark = pytest.mark.skipif(not IS_DEEP, reason="minutes of a WikkaWiki's move over kills: with COLUMNAR_DEEP")
SEED = seed(392)
PAGES, REVISIONS, COMMENTS, PEOPLE, FILES = 1_000, 10_000, 2_000, 200, 300


def tags_of(made: WikkaWiki) -> list[str]:
    place = made.columns["pages"].index("tag")
    return sorted({(row[place] or b"").decode() for row in made.pages})


def whole_wiki(version: Version) -> WikkaWiki:
    made = random_wiki(version, SEED, pages=PAGES, revisions=REVISIONS, users=PEOPLE)
    draw, tags = Random(SEED), tags_of(made)
    for number in range(COMMENTS):
        values = {
            "id": str(number + 1),
            "page_tag": draw.choice(tags),
            "time": "2010-01-01 00:00:00",
            "comment": f"comment {number}",
            "user": "host.example",
        }
        made.comments.append(tuple(values[one].encode() if one in values else None for one in made.columns["comments"]))
    return made


def upload_files(made: WikkaWiki, folder: Path) -> Path:
    """Make a folder as WikkaWiki has it: files of some pages, a few of them large or equal."""
    draw, tags = Random(SEED + 1), tags_of(made)
    for number in range(FILES):
        place = folder / draw.choice(tags) / f"file{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        large = draw.randbytes(3_000_000 if number % 50 == 1 else 1_000).hex().encode()
        place.write_bytes(b"the same" if number % 10 == 0 else large)
    return folder


@pytest.mark.lasts(400)
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("version", ["1.2", "1.4.2"])
def test_a_whole_wiki_comes_over_three_kills_and_all_its_users_sign_in(tmp_path: Path, version: Version) -> None:
    print("seed", SEED)
    old = whole_wiki(version)
    (tmp_path / "wikka.sql").write_bytes(dump_of(old.tables()))
    with StoreThread(tmp_path / "store") as store:
        command = [sys.executable, "-m", "wikka_port.cli", "import-wikkawiki", "--dump", str(tmp_path / "wikka.sql")]
        command += ["--uploads", str(upload_files(old, tmp_path / "uploads"))]
        command += ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
        wiki = Wiki("127.0.0.1", store.port, indexes="application")
        wiki.prepare()

        def pages_done() -> int:
            found = [cells for _, cells in wiki.store.run(lambda c: list(c.table(schema.IMPORTS).scan()))]
            return max((int(cells.get(b"meta:pages", b"0")) for cells in found), default=0)

        for most in (100, 300, 500):
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(tmp_path)})
            until(lambda n=most, ran=running: pages_done() >= n or ran.poll() is not None, within_s=600)
            assert running.poll() is None, "it ended before it was killed"
            running.send_signal(signal.SIGKILL)
            running.wait()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1_000)
        print(done.stdout, done.stderr)
        assert done.returncode == 0
        assert "went on behind page " in done.stderr
        moved = {"revisions": REVISIONS, "rights": PAGES, "accounts": PEOPLE, "comments": COMMENTS, "files": FILES}
        for kind, number in moved.items():
            assert re.search(rf"^{kind}: {number:,} there, {number:,} here, equal: [0-9a-f]{{64}}$", done.stdout, re.M)
        cells = repr(store.dump(USERS, SITE))
        hashes = [value.decode() for row in old.users for value in row if value is not None and len(value) >= 32]
        assert len(hashes) >= PEOPLE
        assert not [one for one in hashes if one[-31:] in cells]
        directory, passwords = accounts_of(wiki).directory, Passwords()
        kinds = directory.hash_kinds.expected()
        refused = []
        for number, row in enumerate(old.users):
            account = directory.account((row[0] or b"").decode())
            password = f"pass&<{number}>ä"
            if account is None or not passwords.verify(account.password, password, kinds):
                refused.append(number)
        assert refused == []
        wiki.store.close()


@pytest.mark.lasts(120)
@pytest.mark.timeout(400)
def test_dumps_of_mariadb_and_the_server_itself_give_the_rows_that_were_put_in(tmp_path: Path) -> None:
    programs = [shutil.which(one) for one in ("mariadb-install-db", "mariadbd", "mariadb", "mariadb-dump")]
    if None in programs:
        pytest.skip("Debian's mariadb-server is not installed: no dump of a real server is read")
    install, server, client, dump = map(str, programs)
    folder, socket = tmp_path / "data", tmp_path / "s"
    subprocess.run([install, f"--datadir={folder}", "--auth-root-authentication-method=normal", "--user=root"],
                   check=True, capture_output=True)  # fmt: skip
    serving = [server, f"--datadir={folder}", f"--socket={socket}", "--skip-networking", "--user=root"]
    running = subprocess.Popen(serving, stderr=subprocess.DEVNULL)
    try:
        asks = [client, f"--socket={socket}", "-uroot", "--default-character-set=utf8mb4"]
        until(lambda: subprocess.run([*asks, "-e", "select 1"], capture_output=True, check=False).returncode == 0,
                   within_s=60)  # fmt: skip
        old = random_wiki("1.4.2", SEED, pages=20, revisions=60, users=5)
        old.add_page("OddPage", "".join(map(chr, range(1, 256))) + "'\\'\\\\ \"\"😀", "2012-01-01 00:00:00")
        made = b"CREATE DATABASE w CHARACTER SET utf8mb4; USE w;\n" + dump_of(old.tables())
        subprocess.run(asks, input=made, check=True)
        for options in ([], ["--skip-extended-insert", "--complete-insert"], ["--hex-blob", "--skip-comments"]):
            sql = subprocess.run([dump, f"--socket={socket}", "-uroot", *options, "w"], check=True, capture_output=True)
            copy = tmp_path / f"{len(options)}.sqlite"
            source = copied([sql.stdout[n : n + 1_000] for n in range(0, len(sql.stdout), 1_000)], copy)
            for kind, columns in old.columns.items():
                expected = sorted(tuple((one or b"").decode() for one in row) for row in getattr(old, kind))
                assert sorted(source.rows(kind, columns, columns[0])) == expected
            source.database.close()
            copy.unlink()
        address = f"mysql://root@localhost/w?socket={socket}"
        source = copied_from(parse_address(address), tmp_path / "server.sqlite")
        for kind, columns in old.columns.items():
            expected = sorted(tuple((one or b"").decode() for one in row) for row in getattr(old, kind))
            assert sorted(source.rows(kind, columns, columns[0])) == expected
        source.database.close()
        with pytest.raises(ServerError, match="No such file"):
            copied_from(parse_address(address + "-not"), tmp_path / "none.sqlite")
        with pytest.raises(ServerError, match=r"mysql://eve@.*Access denied"):
            copied_from(parse_address(address.replace("//root@", "//eve@")), tmp_path / "none.sqlite")
    finally:
        running.terminate()
        running.wait()
