"""``wikka import`` of a DokuWiki against a real store, as an operator types it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path

import bcrypt
import pytest
from click.testing import CliRunner, Result

from tests.support.dokuwiki_data import add_page, make_dokuwiki
from tests.support.markdown_vault import write
from tests.support.stored_wiki import stored_wiki
from wikka_port.cli import main
from wikka_port.commands.serving_options import accounts_of
from wikka_port.pages import Wiki
from wikka_port.rights.acl import verdict
from wikka_port.rights.rules import Privilege, effective


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("doku")) as made:
        yield made


def imported(wiki: Wiki, *words: str) -> Result:
    return CliRunner().invoke(main, ["import", "--store", wiki.store.address, "--indexes=application", *words])


def test_a_dokuwiki_comes_with_revisions_and_media_and_a_second_run_takes_what_is_newer(
    wiki: Wiki, tmp_path: Path
) -> None:
    make_dokuwiki(tmp_path)
    first = imported(wiki, str(tmp_path))
    assert first.exit_code == 0, first.output
    assert re.search(r"^revisions: 8 there, 8 here, equal: [0-9a-f]{64}$", first.output, re.M)
    assert re.search(r"^files: 3 there, 3 here, equal: [0-9a-f]{64}$", first.output, re.M)
    assert "1 pages that were deleted there: they do not come" in first.output
    plans = wiki.page("Team/Plans")
    assert plans is not None
    assert plans.body == (
        "**three** [[Team|start]] [[Team/More|more]] "
        '{{image src="logo.png" page="HomePage" width="90"}} [plan.pdf](plan.pdf)\n'
    )
    assert [(one.author, one.note, one.minor, one.time_ms) for one in wiki.revisions("Team/Plans", limit=9)] == [
        ("bob", "third", True, 1_300_000_300_000),
        ("(visitor)", "typo", True, 1_300_000_200_000),
        ("ann", "created", False, 1_300_000_100_000),
    ]
    assert wiki.page("Team") is not None
    assert [one.author for one in wiki.revisions("Edited", limit=9)] == ["(unknown)", "ann"]
    assert wiki.page("No history") is not None
    assert set(wiki.files.files_of("Team")) == {"unused.png"}
    assert "192.0.2.7" not in first.output
    again = imported(wiki, str(tmp_path / "data"))
    assert again.exit_code == 0, again.output
    assert "8  revisions that were here" in again.output
    assert "stored" not in again.output
    add_page(tmp_path, "team:new", [(1_400_000_000, "bob", "", "newer")])
    later = imported(wiki, str(tmp_path))
    assert later.exit_code == 0, later.output
    assert "1  revisions stored" in later.output


ANN_HASH = bcrypt.hashpw(b"the <word> & more", bcrypt.gensalt(4, b"2a")).decode()
USERS = f"""# <?php exit()?>
ann:{ANN_HASH}:Ann A:ann@b.example:user,admin,staff
bob:{md5(b"simple words", usedforsecurity=False).hexdigest()}:Bob:bob@b.example:user
cat:$1$abc$0123456789:Cat:cat@b.example:staff
"""
ACL = """# <?php exit()?>
*\t@ALL\t1
*\t@user\t8
team:*\t@ALL\t0
team:*\t@staff\t8
edited\tbob\t0
"""


def test_rights_and_accounts_come_before_the_pages(wiki: Wiki, tmp_path: Path) -> None:
    make_dokuwiki(tmp_path)
    write(tmp_path, "conf/local.php", "<?php\n$conf['useacl'] = 1;\n$conf['superuser'] = '@admin';\n")
    write(tmp_path, "conf/acl.auth.php", ACL)
    write(tmp_path, "conf/users.auth.php", USERS)
    write(tmp_path, "data/pages/public.txt", "{{team:plan.pdf}} {{team:unused.png}}")
    done = imported(wiki, str(tmp_path), "--prefix", "Kept")
    assert done.exit_code == 0, done.output
    for kind in ("revisions", "files", "accounts", "rights"):
        assert re.search(rf"^{kind}: .*, equal: [0-9a-f]{{64}}$", done.output, re.M), kind
    assert "cat: its password has a hash of the kind smd5" in done.output
    may = rights_of(wiki)
    assert may("Kept/Public", None) == (True, False)
    assert may("Kept/Public", "bob") == (True, True)
    for page in ("Kept/Team", "Kept/Team/Plans", "Kept/Team/New one"):
        assert may(page, None) == may(page, "bob") == (False, False), page
        assert may(page, "cat") == (True, True), page
    assert may("Kept/Edited", "bob") == (False, False)
    assert set(wiki.files.files_of("Kept/Public")) == set(), "the files of the team stay with the team"
    assert set(wiki.files.files_of("Kept/Team")) | set(wiki.files.files_of("Kept/Team/Plans")) == {
        "unused.png",
        "plan.pdf",
    }
    accounts = accounts_of(wiki)
    kinds, passwords = accounts.directory.hash_kinds.expected(), accounts.registration.passwords
    for name, password in (("ann", "the <word> & more"), ("bob", "simple words")):
        account = accounts.directory.account(name)
        assert account is not None
        assert account.admin == (name == "ann")
        assert passwords.verify(account.password, password, kinds)
        assert not passwords.verify(account.password, f"{password}.", kinds)
    assert [one.signed for one in wiki.revisions("Kept/Team/Plans", limit=9)] == ["account", "", "account"]
    own = wiki.rights.of(["Kept/Edited"])["Kept/Edited"]
    wiki.rights.change("Kept/Edited", own, "", {Privilege.READ: "*"})
    write(tmp_path, "data/pages/edited.txt", "a newer secret", 1_500_000_000)
    again = imported(wiki, str(tmp_path), "--prefix", "Kept")
    assert again.exit_code == 0, again.output
    edited = wiki.page("Kept/Edited")
    assert edited is not None
    assert edited.body == "by another program\n", "others may read it here by now"
    assert "pages that others may read here" in again.output
    assert "3 unchanged" in again.output
    assert "stored" not in again.output


def rights_of(wiki: Wiki) -> Callable[[str, str | None], tuple[bool, bool]]:
    def may(page: str, name: str | None) -> tuple[bool, bool]:
        rules, own = wiki.rights.rules(), wiki.rights.of([page])[page]
        read, write = (effective(page, own, rules, one)[0] for one in (Privilege.READ, Privilege.WRITE))
        return verdict(read, name, {}).allowed, verdict(write, name, {}).allowed

    return may


def test_damage_in_one_page_stops_no_other(wiki: Wiki, tmp_path: Path) -> None:
    make_dokuwiki(tmp_path)
    (tmp_path / "data/attic/team/plans.1300000100.txt.gz").write_bytes(b"\x1f\x8b damaged")
    (tmp_path / "data/meta/start.changes").write_bytes(b"\xff\x00no\tline\n" * 10)
    (tmp_path / "data/pages/link.txt").symlink_to("/etc/passwd")
    done = imported(wiki, str(tmp_path), "--prefix", "Old")
    assert done.exit_code == 0, done.output
    assert "1 texts of the attic that cannot be read" in done.output
    assert "link.txt': a link to another place" in done.output
    assert [one.author for one in wiki.revisions("Old/Team/Plans", limit=9)] == ["bob", "(visitor)"]
    assert wiki.page("Old") is not None


def test_rights_that_cannot_be_read_bring_no_page(wiki: Wiki, tmp_path: Path) -> None:
    make_dokuwiki(tmp_path)
    write(tmp_path, "acl.txt", ACL)
    write(tmp_path, "conf/local.php", "<?php\n$conf['useacl'] = true;\n")
    (tmp_path / "conf/acl.auth.php").symlink_to(tmp_path / "acl.txt")
    done = imported(wiki, str(tmp_path), "--prefix", "Stopped")
    assert (done.exit_code, wiki.page("Stopped/Team/Plans")) == (1, None), done.output
    assert "acl.auth.php cannot be read: it is a link to another place" in done.output
    write(tmp_path, "conf/local.php", "<?php\n$conf['useacl'] = 0;\n")
    (tmp_path / "conf/acl.auth.php").unlink()
    done = imported(wiki, str(tmp_path), "--prefix", "Open")
    assert done.exit_code == 0, done.output
    assert "Its access control is off (useacl)" in done.output
    write(tmp_path, "conf/local.php", "<?php\n$conf['useacl'] = true;\n")
    write(tmp_path, "conf/acl.auth.php", f"{ACL}team:*\t@all people\t0\n")
    done = imported(wiki, str(tmp_path), "--prefix", "Closed")
    assert done.exit_code == 0, done.output
    assert "1 lines of acl.auth.php" in done.output
    assert rights_of(wiki)("Closed/Team/Plans", None) == (False, False)
