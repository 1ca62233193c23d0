"""Menus, words and prefixes beside a configuration of WikkaWiki."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from wikka_port.markup import interwiki
from wikka_port.wikkawiki import site_move
from wikka_port.wikkawiki.php_config import Config
from wikka_port.wikkawiki.site_move import OldSite, read_site

STOCK = "[[CategoryCategory|Categories]]\nPageIndex\nRecentChanges\nRecentlyCommented\n[[UserSettings|Login/Register]]"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interwiki, "SITES", {"wikipedia": "https://en.wikipedia.org/wiki/"})


def read(tmp_path: Path, files: dict[str, str | bytes], **values: str) -> OldSite:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_site(Config(values), tmp_path)


def test_a_folder_without_such_files_and_with_those_of_every_wiki_gives_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == OldSite()
    stock = {f"config/main_menu{role}.inc": STOCK + "\n{{searchform}}" for role in ("", ".user", ".admin")}
    defaults = {"max_new_document_urls": "15", "max_new_comment_urls": "6", "content_filtering": "0"}
    prefixes = {"interwiki.conf": "WikiPedia http://en.wikipedia.org/wiki/\r\n"}
    assert read(tmp_path, {**stock, **prefixes}, **defaults) == OldSite()


def test_menus_come_from_the_first_folder_that_has_them(tmp_path: Path) -> None:
    menu = (
        "[[HomePage | Start ]]\r\nPageIndex\r\n[[TidePool pools]]\n[[https://x.example/a|X]]\n[[WikiPedia:Tide|Tide]]\n"
        "You are {{whoami}}\n{{logout}}\nplain words\n[[A|b]] and CamelCase\n[[mailto:a@b.c|write]]\n"
    )
    files: dict[str, str | bytes] = {"mine/main_menu.inc": menu, "config/main_menu.inc": "OtherPage", "mine/x.inc": ""}
    site = read(tmp_path, files, menu_config_path="none:mine", logged_in_navigation_links="PageIndex :: [[MyPage me]]")
    assert site.menus == {
        "menu_visitors": [
            "Start | HomePage",
            "PageIndex | PageIndex",
            "pools | TidePool",
            "X | https://x.example/a",
            "Tide | https://en.wikipedia.org/wiki/Tide",
        ],
        "menu_users": ["PageIndex | PageIndex", "me | MyPage"],
    }
    (note,) = site.notes
    assert (
        note == "main_menu.inc: entries that did not come: plain words, [[A|b]] and CamelCase, [[mailto:a@b.c|write]]"
    )


def test_a_menu_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    site = read(tmp_path, {"config/main_menu.inc": "\n".join(f"Page{number}" for number in range(20))})
    assert len(site.menus["menu_visitors"]) == 12
    assert site.notes[0].count("|") == 8


def test_words_come_where_they_were_in_force_and_numbers_that_were_changed(tmp_path: Path) -> None:
    words = "casino\ncheap pills\ncasino\n(a|b)\n<?php exit ?>\n"
    files: dict[str, str | bytes] = {
        "badwords.txt.php": codecs.encode(words, "rot13").replace("<?cuc rkvg ?>", "<?php")
    }
    assert read(tmp_path, files).notes == [
        "badwords.txt.php: its 3 words did not come, for content_filtering is off there"
    ]
    site = read(tmp_path, files, content_filtering="1", max_new_document_urls="20", max_new_comment_urls="6")
    assert site.policy == {"page_links": "20", "words": ["casino", "cheap pills"]}
    assert site.notes == ["badwords.txt.php: words that did not come: (a|b)"]
    wrong = read(tmp_path, {"other.txt": "pnfvab"}, content_filtering="1", badwords_path="other.txt",
                 max_new_comment_urls="many")  # fmt: skip
    assert wrong.policy == {"words": ["casino"]}
    assert "max_new_comment_urls of the configuration did not come" in wrong.notes[0]


def test_prefixes_are_named_with_the_command_that_brings_them(tmp_path: Path) -> None:
    text = "# mine\nHarbour http://h.example/?a=1&amp;p=\r\nCss-discuss http://x.example/\nWikiPedia http://other.example/\n"
    (note,) = read(tmp_path, {"interwiki.conf": text}).notes
    assert note == (
        "prefixes of other wikis (Harbour): remove line 3, which this wiki cannot read, and start it with:"
        f" wikka run --interwiki {tmp_path / 'interwiki.conf'}"
    )
    (note,) = read(tmp_path, {"interwiki.conf": text.replace("Css-discuss", "Css")}).notes
    assert "(Harbour, Css): start the wiki with: wikka run" in note


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_move, "FILE_BYTES_MAX", 10)
    site = read(tmp_path, {"config/main_menu.inc": "LongerThanTenBytes", "interwiki.conf": b"\xe9 \xff"})
    assert site.menus == {}
    (note,) = site.notes
    assert note.endswith("main_menu.inc: not read, it has more than 10 bytes")
    (tmp_path / "badwords.txt.php").mkdir()
    assert "badwords.txt.php: not read" in read(tmp_path, {}).notes[1]
