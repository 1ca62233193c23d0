"""Comments of a WikkaWiki, moved into a real store: threads, deleted ones, again, and newer ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.sql_dumps import dump_of
from tests.support.store_thread import StoreThread
from tests.support.wikkawiki_database import Version, WikkaWiki
from wikka_port.cli import main
from wikka_port.comments.comment_rows import DEPTH_MAX, PLAIN, REMOVED, RESTORED, VISIBLE, Comment
from wikka_port.comments.stored_comments import NewComment
from wikka_port.comments.threads import OLDEST
from wikka_port.consistency import check
from wikka_port.pages import Wiki
from wikka_port.rights.rules import PageRights
from wikka_port.wikkawiki.comment_move import typed_text

NOON = "2012-07-01 12:00:00"
NOON_MS = 1_341_144_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreThread]:
    with StoreThread(tmp_path / "store") as running:
        yield running


def moved(store: StoreThread, old: WikkaWiki, path: Path) -> Result:
    path.write_bytes(dump_of(old.tables()))
    address = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
    return CliRunner().invoke(main, ["import-wikkawiki", "--dump", str(path), *address])


def opened(store: StoreThread) -> Wiki:
    return Wiki("127.0.0.1", store.port, indexes="application")


def comments(wiki: Wiki, page: str) -> list[Comment]:
    place = wiki.comments.find_commented(page)
    return list(wiki.comments.part(place.history, place.head, order=OLDEST).comments)


def anybody(_name: str, _rights: PageRights) -> None:
    """Allow everything."""


def a_wiki(version: Version) -> WikkaWiki:
    old = WikkaWiki(version)
    old.add_page("HomePage", "A page.", NOON)
    old.add_page("SandBox", "Another.", NOON)
    old.add_user("AdaLovelace", "secret enough")
    return old


@pytest.mark.parametrize("version", ["1.2", "1.4.2"])
def test_comments_come_with_threads_and_again_only_newer_ones(
    store: StoreThread, tmp_path: Path, version: Version
) -> None:
    old = a_wiki(version)
    first = old.add_comment("HomePage", 'Is **this** "so" <b>?\nYes & no', NOON, user="AdaLovelace")
    answer = old.add_comment("homepage", "It is.", "2012-07-01 12:00:01", parent=first)
    gone = old.add_comment("HomePage", "spam", "2012-07-01 12:00:02", status="deleted")
    old.add_comment("HomePage", "to the spam", "2012-07-01 12:00:02", parent=gone)
    old.add_comment("SandBox", "there", "2012-07-02 12:00:00")
    old.add_comment("NoPage", "lost", NOON)
    path = tmp_path / "wikka.sql"
    done = moved(store, old, path)
    assert done.exit_code == 0, done.output
    assert "5  comments stored" in done.output
    assert "comments: 5 there, 5 here, equal" in done.output
    assert "1 comments of pages that are not here" in done.output
    wiki, new = opened(store), version == "1.4.2"
    found = comments(wiki, "HomePage")
    assert (found[0].text, found[0].author, found[0].signed) == (
        'Is **this** "so" <b>?\nYes & no',
        "AdaLovelace",
        "account",
    )
    assert (found[0].time_ms, found[0].markup) == (NOON_MS, PLAIN)
    assert [(one.text, one.parent, one.state) for one in found[1:]] == [
        ("It is.", 1 if new else 0, VISIBLE),
        ("spam", 0, REMOVED if new else VISIBLE),
        ("to the spam", 3 if new else 0, VISIBLE),
    ]
    again = moved(store, old, path)
    assert "5  comments that were here" in again.output
    assert "comments stored" not in again.output
    wiki.comments.add("HomePage", b"", NewComment("mine", "Ada", "account", "a form", "wikka"), allow=anybody)
    old.add_comment("HomePage", "newer", "2013-07-01 12:00:00", parent=answer)
    newer = moved(store, old, path)
    assert newer.exit_code == 0, newer.output
    assert "1  comments stored" in newer.output
    assert [one.text for one in comments(wiki, "HomePage")][-2:] == ["mine", "newer"]
    assert comments(wiki, "HomePage")[-1].parent == (2 if new else 0)
    assert check(wiki).differences == ()
    wiki.store.close()


def test_states_follow_the_source_unless_they_were_changed_here(store: StoreThread, tmp_path: Path) -> None:
    old, path = a_wiki("1.4.2"), tmp_path / "wikka.sql"
    for text in ("stays", "deleted there", "deleted here", "brought back here"):
        old.add_comment("HomePage", text, NOON, status="deleted" if text == "brought back here" else "")
    assert moved(store, old, path).exit_code == 0
    wiki = opened(store)
    for number, state, by in ((3, REMOVED, "owner"), (4, VISIBLE, RESTORED)):
        wiki.comments.change("HomePage", b"", number, lambda one: _in(one, state, by), allow=anybody)  # noqa: B023
    status = old.columns["comments"].index("status")
    row = list(old.comments[1])
    row[status] = b"deleted"
    old.comments[1] = tuple(row)
    done = moved(store, old, path)
    assert done.exit_code == 0, done.output
    assert "1  comments that were deleted there since" in done.output
    assert "2 comments that were deleted or brought back here" in done.output
    assert "comments: 2 there, 2 here, 2 left out, equal" in done.output
    assert [one.state for one in comments(wiki, "HomePage")] == [VISIBLE, REMOVED, REMOVED, VISIBLE]
    wiki.store.close()


def _in(one: Comment, state: str, by: str) -> Comment:
    return replace(one, state=state, removed_by=by)


def test_a_deep_thread_is_cut_to_the_depth_of_this_wiki(store: StoreThread, tmp_path: Path) -> None:
    old, last = a_wiki("1.4.2"), 0
    for number in range(DEPTH_MAX + 3):
        last = old.add_comment("HomePage", str(number), NOON, parent=last)
    done = moved(store, old, tmp_path / "wikka.sql")
    assert done.exit_code == 0, done.output
    wiki = opened(store)
    found = comments(wiki, "HomePage")
    assert [one.depth for one in found] == [*range(1, DEPTH_MAX + 1), *([DEPTH_MAX] * 3)]
    assert [one.parent for one in found] == list(range(DEPTH_MAX + 3))
    wiki.store.close()


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ("a<br />\r\nb<br />\n", "a\nb\n"),
        ("a &lt;br /&gt; &amp;amp; &quot;b&quot;", 'a <br /> &amp; "b"'),
        ("no <br /> break", "no <br /> break"),
        ("", ""),
    ],
)
def test_the_text_is_what_was_typed(stored: str, typed: str) -> None:
    assert typed_text(stored) == typed
