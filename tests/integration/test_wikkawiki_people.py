"""Accounts and rights of a WikkaWiki in a real store: who signs in, who may read, and what a second move does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.sql_dumps import dump_of
from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import wiki_on
from tests.support.wiki_client import WikiClient
from tests.support.wikkawiki_database import Version, WikkaWiki
from wikka_port.accounts import passwords
from wikka_port.accounts.factory import Accounts
from wikka_port.accounts.signing_in import Client, Refused
from wikka_port.accounts.tables import SITE, USERS
from wikka_port.antispam.stored_policy import read_policy
from wikka_port.cli import main
from wikka_port.commands import serving_options
from wikka_port.commands.serving_options import accounts_of
from wikka_port.consistency import check
from wikka_port.importer import Importer
from wikka_port.pages import Wiki
from wikka_port.rights.acl import verdict
from wikka_port.rights.rules import Privilege, effective
from wikka_port.site_settings import KEPT, changed_settings
from wikka_port.wikkawiki import migration

CONFIG = """<?php $wakkaConfig = array('admin_users' => 'AdaLovelace', 'wakka_name' => "Ada's wiki", 'root_page' => 'HomePage',
'default_read_acl' => '*', 'default_write_acl' => '+', 'default_comment_read_acl' => '*', 'default_comment_post_acl' => '+',
'allow_user_registration' => '0'); ?>"""  # noqa: E501
CLIENT = Client("192.0.2.1", "test")
TEXTS = {  # text and list for reading, in a second move before its end
    "BecomesPrivate": ("a newer text", "AdaLovelace"),
    "LosesItsList": ("a newer text", "+"),
    "BecomesPublic": ("a newer text", "AdaLovelace"),
    "ChangedHere": ("a newer text", "*"),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreThread]:
    with StoreThread(tmp_path / "store") as running:
        yield running


@pytest.fixture
def wiki(store: StoreThread) -> Iterator[Wiki]:
    with wiki_on(store.port) as made:
        yield made


@pytest.fixture(autouse=True)
def cheap_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hashing = passwords.Passwords.__init__
    monkeypatch.setattr(
        passwords.Passwords, "__init__", lambda self, at_once=4, **given: hashing(self, at_once, memory_kib=8)
    )
    monkeypatch.setattr(migration, "_SPREAD_S", 0.0)
    assert serving_options.accounts_of is accounts_of


def move(store: StoreThread, tmp_path: Path, old: WikkaWiki, *options: str, config: str = CONFIG) -> Result:
    (tmp_path / "wikka.sql").write_bytes(dump_of(old.tables()))
    (tmp_path / "wikka.config.php").write_text(config)
    given = ["--dump", str(tmp_path / "wikka.sql")]
    if config:
        given += ["--wikka-config", str(tmp_path / "wikka.config.php")]
    address = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
    return CliRunner().invoke(main, ["import-wikkawiki", *given, *address, *options])


def signs_in(accounts: Accounts, name: str, password: str) -> bool:
    try:
        accounts.signing_in.sign_in(name, password, CLIENT)
    except Refused:
        return False
    return True


@pytest.mark.parametrize("version", ["1.2", "1.4.2"])
def test_all_users_sign_in_with_their_old_passwords_and_no_old_hash_is_in_the_store(
    wiki: Wiki, store: StoreThread, tmp_path: Path, version: Version
) -> None:
    old = WikkaWiki(version)
    old.add_page("HomePage", "text", "2012-01-01 00:00:00", user="AdaLovelace")
    old.add_user("AdaLovelace", "analytical&<engine>", "ada@example.org", changescount="30", doubleclickedit="N")
    old.add_user("GraceHopper", "größtes Werk", "grace@example.org", kind="bcrypt" if version == "1.4.2" else "md5")
    old.add_user("BadBoy", "evil password", status="banned")
    done = move(store, tmp_path, old)
    assert done.exit_code == 0, done.output
    assert "accounts: 3 there, 3 here, equal: " in done.output
    assert "wikka serve --site-name 'Ada'\"'\"'s wiki' --root-page HomePage --registration closed" in done.output
    cells = repr(store.dump(USERS, SITE))
    hashes = [value.decode() for row in old.users for value in row if value is not None and len(value) >= 32]
    assert hashes
    assert not [one for one in hashes if one in cells or one[-31:] in cells]
    accounts = accounts_of(wiki)
    ada = accounts.directory.account("adalovelace")
    assert ada is not None
    assert (ada.name, ada.admin, ada.email, ada.created_ms) == ("AdaLovelace", True, "ada@example.org", 1267679167000)
    assert (ada.settings.changes, ada.settings.revisions, ada.settings.dblclick) == (30, 20, False)
    assert not signs_in(accounts, "AdaLovelace", "analytical&amp;<engine>x")
    for _ in ("with the old hash", "with the renewed one"):
        assert signs_in(accounts, "AdaLovelace", "analytical&<engine>")
        assert signs_in(accounts, "GraceHopper", "größtes Werk")
    assert not signs_in(accounts, "BadBoy", "evil password")
    grace = accounts.directory.account("GraceHopper")
    assert grace is not None
    assert grace.password.startswith("$argon2id$")
    page = wiki.page("HomePage")
    assert page is not None
    assert page.signed == "account"
    assert check(wiki).differences == ()


def test_a_second_move_brings_what_is_newer_and_leaves_what_was_changed_here(
    wiki: Wiki, store: StoreThread, tmp_path: Path
) -> None:
    accounts = accounts_of(wiki)
    accounts.directory.make("TomHere", status="active", password=accounts.signing_in.passwords.hashed("mine"))
    first, second = WikkaWiki("1.4.2"), WikkaWiki("1.4.2")
    for old in (first, second):
        old.add_page("HomePage", "text", "2012-01-01 00:00:00", user="TomHere")
        old.add_user("TomHere", "another person's")
        old.add_user("GivenName", "first password", "same@example.org")
        old.add_user("OtherName", "pw of other", "same@example.org")
        old.add_user("Bad;Name", "x" * 10)
        old.add_user("ForcedName", "to be reset", force_password_reset="1")
    first.add_user("ChangesThere", "before", challenge="aaaaaaaa")
    second.add_user("ChangesThere", "after", challenge="bbbbbbbb", changescount="77")
    done = move(store, tmp_path, first)
    assert done.exit_code == 0, done.output
    for line in (
        "TomHere: an account here has this name",
        "OtherName: another account has same@example.org",
        "Bad;Name: A name cannot have the character ;",
        "ForcedName: had to set a new password there",
    ):
        assert line in done.output
    page = wiki.page("HomePage")
    assert page is not None
    assert page.signed == "", "the TomHere of the other wiki is somebody else"
    assert signs_in(accounts, "TomHere", "mine")
    assert signs_in(accounts, "ChangesThere", "before") is True
    given = accounts.directory.account("GivenName")
    assert given is not None
    accounts.directory.set_status(given, "suspended")
    done = move(store, tmp_path, second)
    assert done.exit_code == 0, done.output
    assert "GivenName: changed here, stays as it is" in done.output
    changes = accounts.directory.account("ChangesThere")
    assert changes is not None
    assert changes.settings.changes == 77
    assert signs_in(accounts, "ChangesThere", "before"), "the password that was renewed here stays"
    again = accounts.directory.account("GivenName")
    assert again is not None
    assert again.status == "suspended"


def test_a_password_that_was_changed_there_before_anybody_signed_in_here_is_moved_again(
    wiki: Wiki, store: StoreThread, tmp_path: Path
) -> None:
    for version in ("1.2", "1.4.2"):
        old, newer = WikkaWiki(version), WikkaWiki(version)
        for one, password, challenge in ((old, "before it", "aaaaaaaa"), (newer, "after it", "bbbbbbbb")):
            one.add_page("HomePage", "text", "2012-01-01 00:00:00")
            one.add_user(f"UserOf{version[2]}", password, challenge=challenge)
        assert move(store, tmp_path, old).exit_code == 0
        assert "1  accounts that were here" in move(store, tmp_path, old).output
        assert "1  accounts with something newer" in move(store, tmp_path, newer).output
        accounts = accounts_of(wiki)
        assert not signs_in(accounts, f"UserOf{version[2]}", "before it")
        assert signs_in(accounts, f"UserOf{version[2]}", "after it")


def test_rights_are_there_before_their_pages_and_follow_the_source_until_they_are_changed_here(
    wiki: Wiki, store: StoreThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = WikkaWiki("1.4.2")
    for tag, owner in (("SecretPage", "AdaLovelace"), ("OpenPage", "(Public)"), ("PlainPage", "(Nobody)")):
        old.add_page(tag, "text", "2012-01-01 00:00:00", owner=owner)
    old.add_acl("secretpage", "AdaLovelace\n!*\n", "!+", "!*", "!*")
    old.add_acl("OpenPage", "*", '# a "note" & more\n*', "*", "*")
    old.add_acl("GonePage", "!*", "!*")
    old.add_acl("PlainPage", "x" * 9_000, "+")
    seen: list[str] = []
    run = Importer.run

    def look(self: Importer) -> object:
        cells = store.dump(b"pages")
        seen.append(repr(cells))
        return run(self)

    monkeypatch.setattr(Importer, "run", look)
    done = move(store, tmp_path, old)
    assert done.exit_code == 0, done.output
    assert "rights: 3 there, 3 here, equal" in done.output
    assert "GonePage" in done.output
    assert "PlainPage: a list of 9,000 characters" in done.output
    assert "AdaLovelace\\n!*" in seen[0], "its rights are there before the page"
    assert "body:latest" not in seen[0]
    rights = wiki.rights.of_pages(["SecretPage", "OpenPage", "PlainPage", "GonePage"])
    assert set(rights) == {"SecretPage", "OpenPage", "PlainPage"}
    assert (rights["SecretPage"].owner, rights["SecretPage"].lists[Privilege.READ]) == (
        "AdaLovelace",
        "AdaLovelace\n!*",
    )
    assert rights["OpenPage"].lists[Privilege.WRITE] == '# a "note" & more\n*'
    assert (rights["PlainPage"].owner, rights["PlainPage"].lists[Privilege.READ]) == ("(Nobody)", "!*")
    rules = wiki.rights.rules()
    assert rules.list_for("OtherPage", Privilege.WRITE)[0].text == "+"

    old.acls.clear()
    old.add_acl("SecretPage", "+", "+", "*", "*")
    old.add_acl("OpenPage", "!*", "!*", "*", "*")
    wiki.rights.change("OpenPage", rights["OpenPage"], "GraceHopper", {Privilege.READ: "*"})
    done = move(store, tmp_path, old)
    assert done.exit_code == 0, done.output
    assert "OpenPage: its rights were changed here" in done.output
    rights = wiki.rights.of_pages(["SecretPage", "OpenPage", "PlainPage"])
    assert rights["SecretPage"].lists[Privilege.READ] == "+"
    assert (rights["OpenPage"].owner, dict(rights["OpenPage"].lists)) == ("GraceHopper", {Privilege.READ: "*"})
    assert dict(rights["PlainPage"].lists) == {}
    assert check(wiki).differences == ()


def test_newer_lists_are_there_before_newer_texts_and_a_page_is_opened_at_the_end(
    wiki: Wiki, store: StoreThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = WikkaWiki("1.4.2")
    old.add_page("BecomesPrivate", "text", "2012-01-01 00:00:00", owner="AdaLovelace")
    old.add_page("LosesItsList", "text", "2012-01-01 00:00:00")
    old.add_page("BecomesPublic", "text", "2012-01-01 00:00:00")
    old.add_page("ChangedHere", "text", "2012-01-01 00:00:00")
    old.add_acl("LosesItsList", "*", "+")
    old.add_acl("BecomesPublic", "AdaLovelace", "+")
    config = CONFIG.replace("'default_read_acl' => '*'", "'default_read_acl' => '+'")
    assert move(store, tmp_path, old, config=config).exit_code == 0
    here = wiki.rights.of(["ChangedHere"])["ChangedHere"]
    wiki.rights.change("ChangedHere", here, "", {Privilege.READ: "*"})
    old.acls.clear()
    old.add_acl("BecomesPrivate", "AdaLovelace", "AdaLovelace")
    old.add_acl("BecomesPublic", "*", "+")
    old.add_acl("ChangedHere", "!*", "!*")
    for tag in ("BecomesPrivate", "LosesItsList", "BecomesPublic", "ChangedHere"):
        old.add_page(tag, "a newer text", "2013-01-01 00:00:00", owner="AdaLovelace")
    seen: dict[str, tuple[str, str]] = {}
    note = Importer._note

    def look(self: Importer, pages: int) -> None:
        for name, own in wiki.rights.of(list(TEXTS)).items():
            page = wiki.page(name)
            assert page is not None
            read = effective(name, own, wiki.rights.present_rules(), Privilege.READ)[0].text
            seen[name] = (page.body, read)
        note(self, pages)

    monkeypatch.setattr(Importer, "_note", look)
    done = move(store, tmp_path, old, config=config)
    assert done.exit_code == 0, done.output
    assert seen == TEXTS, "before the end of the run"
    assert done.output.count("ChangedHere: its rights were changed here") == 1
    after = wiki.rights.of(["BecomesPublic", "ChangedHere"])
    assert after["BecomesPublic"].lists[Privilege.READ] == "*"
    assert after["ChangedHere"].lists[Privilege.READ] == "*"
    assert check(wiki).differences == ()


def test_a_second_move_without_the_configuration_takes_no_right_and_the_last_administrator_stays(
    wiki: Wiki, store: StoreThread, tmp_path: Path
) -> None:
    old = WikkaWiki("1.4.2")
    old.add_page("HomePage", "text", "2012-01-01 00:00:00")
    for name in ("AdaLovelace", "GraceHopper"):
        old.add_user(name, "analytical engine")
    both = CONFIG.replace("'AdaLovelace'", "'AdaLovelace, GraceHopper'")
    assert move(store, tmp_path, old, config=both).exit_code == 0
    directory = accounts_of(wiki).directory

    def administrators() -> list[str]:
        return [one.name for one in directory.all() if one.admin and one.status == "active"]

    without = CONFIG.replace("'admin_users' => 'AdaLovelace', ", "")
    for config in ("", without):
        done = move(store, tmp_path, old, config=config)
        assert done.exit_code == 0, done.output
        assert "accounts: 2 there, 2 here, equal: " in done.output
        assert "without admin_users of --wikka-config administrators stay as they are here" in done.output
        assert administrators() == ["AdaLovelace", "GraceHopper"]
    done = move(store, tmp_path, old)
    assert (done.exit_code, administrators()) == (0, ["AdaLovelace"]), done.output
    other = CONFIG.replace("AdaLovelace", "GraceHopper")
    for passed in range(2):
        done = move(store, tmp_path, old, config=other)
        assert done.exit_code == 0, done.output
        assert ("AdaLovelace: This is the only administrator." in done.output) is (passed == 0)
        assert "administrators stay as they are" not in done.output
        assert administrators() == [["AdaLovelace", "GraceHopper"], ["GraceHopper"]][passed]
    old.users.clear()
    old.add_user("GraceHopper", "analytical engine", status="banned", changescount="77")
    done = move(store, tmp_path, old, config=CONFIG)
    assert done.exit_code == 0, done.output
    assert "GraceHopper: This is the only administrator." in done.output
    assert administrators() == ["GraceHopper"]
    grace = directory.account("GraceHopper")
    assert grace is not None
    assert grace.settings.changes == 77


def test_menus_words_and_links_of_an_old_version_come_with_the_configuration(
    wiki: Wiki, store: StoreThread, tmp_path: Path
) -> None:
    old = WikkaWiki("1.4.2")
    old.add_page("HomePage", "[[HomePage home]]", "2012-01-01 00:00:00")
    config = CONFIG.replace("array(", "array('content_filtering' => '1', 'max_new_comment_urls' => '3',", 1)
    unclear = "1 pages with links that lead to their first word until WikkaWiki 1.3.6"
    first = move(store, tmp_path, old, config=config)
    assert (first.exit_code, unclear in first.output) == (0, True), first.output
    (tmp_path / "config").mkdir()
    (tmp_path / "config/main_menu.inc").write_text("[[TidePool|Pools]]\nPageIndex\n{{searchform}}")
    (tmp_path / "config/main_menu.user.inc").write_text("MyPage")
    (tmp_path / "interwiki.conf").write_text("Harbour http://h.example/\n")
    (tmp_path / "badwords.txt.php").write_text("pnfvab\n")
    before = KEPT.read(wiki.rows)
    here = changed_settings(before.value, {"menu_users": ["Mine | HomePage"]})
    KEPT.write(wiki.rows, before.revision, here, by="Ada", now_ms=1)
    config = config.replace("array(", "array('wakka_version' => '1.3.2',", 1)
    dry = CliRunner().invoke(
        main,
        [
            *("import-wikkawiki", "--dump", str(tmp_path / "wikka.sql"), "--dry-run", "--store", "127.0.0.1:1"),
            *("--wikka-config", str(tmp_path / "wikka.config.php"), "--zone", "Europe/Berlin"),
        ],
    )
    assert "old_zone: Europe/Berlin" in dry.output
    assert "menu_visitors: Pools | TidePool, PageIndex | PageIndex" in dry.output
    done = move(store, tmp_path, old, config=config)
    assert done.exit_code == 0, done.output
    for line in (
        "menu_users was set here already: it stays",
        "menu_visitors is set: Pools | TidePool, PageIndex | PageIndex",
        "antispam was set here already",
        f"(Harbour): start the wiki with: wikka run --interwiki {tmp_path / 'interwiki.conf'}",
    ):
        assert line in done.output
    assert unclear not in done.output
    settings = KEPT.read(wiki.rows).value
    assert (settings.menu_visitors, settings.menu_users) == (
        ("Pools | TidePool", "PageIndex | PageIndex"),
        ("Mine | HomePage",),
    )
    policy = read_policy(wiki.rows).policy
    assert (policy.comment_links, policy.words) == (3, ())
    again = move(store, tmp_path, old, config=config)
    assert "menu_visitors is set" not in again.output


def test_the_zone_of_the_old_wiki_comes_so_that_its_addresses_find_their_revisions(
    wiki: Wiki, store: StoreThread, tmp_path: Path
) -> None:
    old = WikkaWiki("1.4.2")
    for number, time in enumerate(("2012-07-01 12:00:00", "2012-10-28 02:30:00", "2012-10-28 02:45:00")):
        old.add_page("HomePage", f"text {number}", time, latest=number == 2)
    done = move(store, tmp_path, old, "--zone", "Europe/Berlin", config="")
    assert done.exit_code == 0, done.output
    assert "old_zone is set: Europe/Berlin" in done.output
    assert "old_zone" not in move(store, tmp_path, old, "--zone", "Europe/Berlin", config="").output
    web = WikiClient(wiki)
    for number, time in enumerate(("2012-07-01+12:00:00", "2012-10-28+02:30:00")):
        place = web.get(f"/wikka.php?wakka=HomePage&time={time}").headers["Location"]
        assert f"<p>text {number}" in web.get(place).text
    before = KEPT.read(wiki.rows)
    KEPT.write(wiki.rows, before.revision, changed_settings(before.value, {"old_zone": "CET"}), by="Ada", now_ms=1)
    assert "old_zone was set here already" in move(store, tmp_path, old, "--zone", "Europe/Berlin", config="").output
    assert KEPT.read(wiki.rows).value.old_zone == "CET"


def test_bad_words_come_before_antispam_is_set_here(wiki: Wiki, store: StoreThread, tmp_path: Path) -> None:
    old = WikkaWiki("1.4.2")
    old.add_page("HomePage", "[[HomePage home]]", "2012-01-01 00:00:00")
    (tmp_path / "badwords.txt.php").write_text("pnfvab\npurnc cvyyf\n")
    added = "array('content_filtering' => '1', 'wakka_version' => '1.3.2',"
    done = move(store, tmp_path, old, config=CONFIG.replace("array(", added, 1))
    assert done.exit_code == 0, done.output
    assert "antispam is set: words 2" in done.output
    assert read_policy(wiki.rows).policy.words == ("casino", "cheap pills")
    page = wiki.page("HomePage")
    assert page is not None
    assert page.body == "[[HomePage | home]]"


def test_without_the_configuration_the_site_keeps_its_lists_and_the_command_says_so(
    wiki: Wiki, store: StoreThread, tmp_path: Path
) -> None:
    old = WikkaWiki("1.2")
    old.add_page("HomePage", "text", "2012-01-01 00:00:00")
    old.add_acl("HomePage", "*", "+", comment_post="!*")
    done = move(store, tmp_path, old, config="")
    assert done.exit_code == 0, done.output
    assert "without --wikka-config" in done.output
    (rights,) = wiki.rights.of_pages(["HomePage"]).values()
    assert (rights.lists[Privilege.COMMENT_READ], rights.lists[Privilege.COMMENT_POST]) == ("!*", "!*")
    assert wiki.rights.rules().lists == {}
    bad = move(store, tmp_path, old, config="<?php no config")
    assert (bad.exit_code, "no $wakkaConfig" in bad.output) == (1, True)


def test_lists_of_the_site_keep_their_mistakes_and_one_that_cannot_be_read_admits_nobody(
    wiki: Wiki, store: StoreThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WikkaWiki reads ``+ members`` as ``+``: a site that were left without a list would be open."""
    old = WikkaWiki("1.4.2")
    old.add_page("ForMembers", "text", "2012-01-01 00:00:00")
    config = CONFIG.replace("'default_read_acl' => '*'", "'default_read_acl' => '+ members'")
    config = config.replace("'default_write_acl' => '+'", "'default_write_acl' => $writers")
    with monkeypatch.context() as small:
        small.setattr("wikka_port.rights.stored.RULES_BYTES_MAX", 1)
        done = move(store, tmp_path, old, config=config)
    assert (done.exit_code, wiki.page("ForMembers")) == (1, None), done.output
    assert "the site's lists cannot be set, so no page is brought in" in done.output
    for _passed in range(2):
        done = move(store, tmp_path, old, config=config)
        assert done.exit_code == 0, done.output
        assert "default_write_acl cannot be read: administrators alone pass" in done.output
        (rights,) = wiki.rights.of_pages(["ForMembers"]).values()
        rules = wiki.rights.present_rules()
        read, write = (effective("ForMembers", rights, rules, one)[0] for one in (Privilege.READ, Privilege.WRITE))
        assert (read.text, write.text) == ("+ members", "!*")
        assert [verdict(read, name, {}).allowed for name in (None, "AdaLovelace")] == [False, True]


def test_pages_that_the_old_site_closes_come_closed_into_a_wiki_with_lists_of_its_own(
    wiki: Wiki, store: StoreThread, tmp_path: Path
) -> None:
    old = WikkaWiki("1.4.2")
    for tag in ("ForMembers", "ForAll"):
        old.add_page(tag, "text", "2012-01-01 00:00:00")
    old.add_acl("ForAll", "*", "+")
    config = CONFIG.replace("'default_read_acl' => '*'", "'default_read_acl' => '+'")
    wiki.rights.change_rules("", {Privilege.READ: "*", Privilege.WRITE: "Ada"}, wiki.rights.present_rules())
    for _passed in range(2):
        done = move(store, tmp_path, old, config=config)
        assert done.exit_code == 0, done.output
        assert "the site has lists of its own already" in done.output
        own = wiki.rights.of(["ForMembers", "ForAll"])
        assert own["ForMembers"].lists[Privilege.READ] == own["ForMembers"].lists[Privilege.WRITE] == "+"
        assert own["ForAll"].lists[Privilege.READ] == "*"
