"""Accounts out of a wiki in JSON lines and into another: no hash of a password unless it was said, nobody replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.test_wiki_export import command, wiki_in
from wikka_port.accounts.factory import Accounts
from wikka_port.accounts.passwords import OldHash, kinds_of_stored
from wikka_port.accounts.records import Account
from wikka_port.commands.serving_options import accounts_of
from wikka_port.exchange.account_records import account_records
from wikka_port.pages import Wiki

SECRET = "correct horse battery"


def fill(wiki: Wiki) -> Accounts:
    """Make an administrator with settings, a user with a wrapped MD5, a suspended and a deleted one."""
    accounts = accounts_of(wiki)
    passwords = accounts.registration.passwords
    ada = accounts.directory.make(
        "Ada", status="active", email="ada@example.org", admin=True, password=passwords.hashed(SECRET)
    )
    accounts.directory.set_settings(ada, replace(ada.settings, zone="Europe/Berlin", watch=True, changes=20))
    old = OldHash.of_md5("5f4dcc3b5aa765d61d8327deb882cf99", "", "plain")  # of "password"
    accounts.directory.hash_kinds.expect(old.kinds)
    accounts.directory.make("Łukasz", status="active", password=passwords.wrapped(old))
    accounts.directory.make("Eve", status="suspended", email="eve@example.org")
    gone = accounts.directory.make("Gone", status="active", email="gone@example.org")
    accounts.directory.erase(gone)
    wiki.save("Page", "text", author="Ada", signed="account", base=0)
    return accounts


def facts(wiki: Wiki) -> list[object]:
    found = accounts_of(wiki).directory.all()
    return [(one.name, one.status, one.admin, one.email, one.created_ms, one.settings) for one in found]


def account(wiki: Wiki, name: str) -> Account:
    found = accounts_of(wiki).directory.account(name)
    assert found is not None
    return found


def test_accounts_come_with_all_but_their_passwords_and_a_second_import_changes_nothing(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        fill(old)
        out = tmp_path / "wiki.jsonl"
        assert command(old, "export", "--to", "json-lines", out).exit_code == 0
        assert "argon2" not in out.read_text()
        done = command(new, "import", out)
        assert done.exit_code == 0, done.output
        assert "4 accounts made" in done.stdout
        assert "accounts: 4 there, 4 here, equal" in done.stdout
        assert facts(new) == facts(old)
        assert account(new, "Ada").password == ""
        by_address = accounts_of(new).directory.by_address("ADA@example.org")
        assert by_address is not None
        assert by_address.name == "Ada"
        for wiki in (new, old):
            again = command(wiki, "import", out, "--restart")
            assert again.exit_code == 0, again.output
            assert "4 accounts that were here" in again.stdout
            assert "0 accounts made" in again.stdout
        assert account(old, "Ada").password != ""
        assert facts(new) == facts(old)


def test_hashes_come_only_when_it_is_said_and_people_sign_in_with_them(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        passwords = fill(old).registration.passwords
        out = tmp_path / "wiki.jsonl.gz"
        assert command(old, "export", "--to", "json-lines", "--with-password-hashes", out).exit_code == 0
        assert command(new, "import", out).exit_code == 0
        expected = accounts_of(new).directory.hash_kinds.expected()
        assert expected.md5
        assert passwords.verify(account(new, "Ada").password, SECRET, expected)
        assert not passwords.verify(account(new, "Ada").password, "another", expected)
        assert passwords.verify(account(new, "Łukasz").password, "password", expected)


def test_nobody_is_replaced_and_what_was_changed_here_stays(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        fill(old)
        there = accounts_of(new).directory
        there.make("ada", status="active", email="other@example.org", password="a hash")
        there.make("Mallory", status="active", email="eve@example.org")
        out = tmp_path / "wiki.jsonl"
        assert command(old, "export", "--to", "json-lines", "--with-password-hashes", out).exit_code == 0
        done = command(new, "import", out)
        assert done.exit_code == 0, done.output
        assert "1 accounts whose name belongs to somebody else here: not brought" in done.stdout
        assert (account(new, "Ada").password, account(new, "Ada").admin) == ("a hash", False)
        assert account(new, "Eve").email == ""
        assert "Eve: another account has eve@example.org" in done.stdout
        there.set_status(account(new, "Łukasz"), "banned")
        again = command(new, "import", out, "--restart")
        assert "Łukasz: changed here" in again.stdout
        assert account(new, "Łukasz").status == "banned"


def test_other_forms_and_readers_get_no_accounts(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old:
        fill(old)
        for number, words in enumerate(
            (("json-lines", "--readable-by", "anonymous"), ("git",), ("mediawiki",), ("markdown",))
        ):
            out = tmp_path / f"{number}"
            assert command(old, "export", "--to", *words, out).exit_code == 0
            files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
            assert not any(b"ada@example.org" in path.read_bytes() for path in files), words
        for words in (("git",), ("json-lines", "--readable-by", "anonymous")):
            refused = command(old, "export", "--with-password-hashes", "--to", *words, tmp_path / "x")
            assert refused.exit_code == 2, words
        assert not (tmp_path / "x").exists()


DAMAGES = {
    "a costly hash": ("$argon2id$v=19$m=19456", "$argon2id$v=19$m=4194304", "would cost more memory"),
    "no hash": ("$argon2id$v=19", "$argon2i$v=19", "no hash of Argon2id"),
    "another status": ('"status":"suspended"', '"status":"king"', "no status 'king'"),
    "one less": ('"accounts":4', '"accounts":5', "counts other accounts"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_nothing_comes(tmp_path: Path, name: str) -> None:
    before, after, said = DAMAGES[name]
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        fill(old)
        out = tmp_path / "wiki.jsonl"
        assert command(old, "export", "--to", "json-lines", "--with-password-hashes", out).exit_code == 0
        text = out.read_text()
        assert before in text
        out.write_text(text.replace(before, after))
        done = command(new, "import", out)
        assert done.exit_code == 1
        assert said in done.output
        assert new.page("Page") is None
        assert facts(new) == [] or name == "one less"


def test_a_stored_hash_says_which_old_hashes_it_has(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "wiki") as wiki:
        passwords = accounts_of(wiki).registration.passwords
        bcrypt = OldHash.of_bcrypt("$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy")
        for old in (bcrypt, OldHash.of_md5("ab" * 16, "5f3a09c1", "html")):
            assert kinds_of_stored(passwords.wrapped(old)) == old.kinds
        records = list(account_records(fill(wiki).directory.all(), with_hashes=False))
    assert [one.password for one in records] == [""] * 4
