"""Files of new pages on a store whose processes fall between a save and its files: adoption finishes, or waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.falling_wiki import FallingWiki
from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import ADA, empty
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.sessions import visitor_of
from wikka_port.consistency import check
from wikka_port.differences import Kind
from wikka_port.editing.kept_drafts import owner_of_account, owner_of_browser
from wikka_port.files.file_check import is_of_files
from wikka_port.files.file_rows import COMMIT_MS, GRACE_MS, UPLOADS
from wikka_port.files.refusals import UploadGone
from wikka_port.moving.journal import deleted
from wikka_port.pages import Wiki
from wikka_port.rights.adoption import Adoption
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.visitors import unregistered

OWNER = owner_of_browser("a browser")
ANN = replace(unregistered("7f3a"), address="192.0.2.1")
STEPS = ("refer", "blob", "stage", "commit", "end")
NAMES = ("a.txt", "b.txt")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("new") / "data") as running:
        Wiki("127.0.0.1", running.port, indexes="application").prepare()
        yield running


@pytest.fixture(params=["columnar", "plain"])
def house(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[FallingWiki]:
    made = FallingWiki(store.port, request.param, "files")
    empty(made.wiki)
    files = GuardedWiki(made.wiki, ANN).files("New", [OWNER])
    for name in NAMES:
        writer = files.writer(files.begin(name, OWNER))
        writer.write_piece(name.encode())
        files.commit(files.settle(writer.finish_part()), note="of the trip")
    yield made
    made.wiki.store.close()


def save(wiki: Wiki) -> None:
    """Save the page as the browser's visitor, and fall before its files."""
    by, owners = ANN.signature, [OWNER]
    GuardedWiki(wiki, ANN).save("New", "[[a.txt]]", author=by, signed=ANN.signed, base=0, owners=owners)


def save_and_adopt(wiki: Wiki) -> None:
    save(wiki)
    assert GuardedWiki(wiki, ANN).files("New", [OWNER]).waiting.adopt() == {}


def save_and_fall(house: FallingWiki) -> None:
    wiki = house.opened()
    save(wiki)
    wiki.store.close()


def adopt(house: FallingWiki) -> int:
    house.clock.now += COMMIT_MS
    wiki = house.opened()
    try:
        return Adoption(wiki, house.clock).run()
    finally:
        wiki.store.close()


def waiting(wiki: Wiki) -> list[bytes]:
    return wiki.rows.row_keys(UPLOADS, b"", b"q", limit=100)


def whole(house: FallingWiki, page: str = "New") -> None:
    """Check that the page has its files, once, and that nothing else is left."""
    wiki = house.wiki
    found = wiki.page(page)
    assert found is not None
    assert {name: b"".join(wiki.files.content(one)) for name, one in found.files.items()} == {
        name: name.encode() for name in NAMES
    }
    versions = [one for name in NAMES for one in wiki.files.versions(page, name)]
    assert [(one.author, one.signed, one.note) for one in versions] == [(ANN.signature, "visitor", "of the trip")] * 2
    assert adopt(house) == 0
    house.clock.now += GRACE_MS
    wiki.files.sweep.run()
    check(wiki, repair=True, clock=house.clock)  # versions that a fall has left staged
    assert waiting(wiki) == []
    assert [one for one in check(wiki, clock=house.clock).differences if is_of_files(one)] == []


@pytest.mark.parametrize("step", STEPS)
def test_a_save_that_falls_among_its_files_is_finished(house: FallingWiki, step: str) -> None:
    assert house.fall(step, save_and_adopt)
    assert 1 <= adopt(house) <= 2
    whole(house)


@pytest.mark.parametrize("step", STEPS)
def test_a_save_that_falls_before_its_files_is_finished_by_an_adoption_that_falls_too(
    house: FallingWiki, step: str
) -> None:
    save_and_fall(house)
    assert house.fall(step, lambda wiki: Adoption(wiki, house.clock).run())
    adopt(house)
    whole(house)


def test_a_fall_before_the_page_is_saved_gives_it_nothing(house: FallingWiki) -> None:
    assert house.fall("save noted", save_and_adopt)
    assert (house.wiki.page("New"), adopt(house)) == (None, 0)
    save_and_adopt(house.wiki)
    whole(house)


def test_a_save_that_lost_to_another_proves_nothing(house: FallingWiki) -> None:
    assert house.fall("save noted", save_and_adopt)
    house.wiki.save("New", "By another.", author=ANN.signature, signed=ANN.signed, base=0)
    assert (adopt(house), house.wiki.files.files_of("New"), len(waiting(house.wiki))) == (0, {}, 3)


@pytest.mark.parametrize("redirect", [True, False])
def test_a_page_that_was_renamed_meanwhile_gets_its_files(house: FallingWiki, redirect: bool) -> None:
    save_and_fall(house)
    house.wiki.mover.rename("New", "Other", ADA, redirect=redirect)
    assert adopt(house) == 2
    whole(house, "Other")


def test_another_page_of_the_name_gets_no_files_of_the_one_that_was_renamed(house: FallingWiki) -> None:
    """Nothing leads from a name that another page has to the page that had it, so its files wait for their owner."""
    save_and_fall(house)
    house.wiki.mover.rename("New", "Other", ADA, redirect=False)
    house.wiki.save("New", "Another page.", author="Eve", base=0)
    assert (adopt(house), house.wiki.files.files_of("New"), len(waiting(house.wiki))) == (0, {}, 3)


def test_a_first_revision_that_is_hidden_makes_nobody_else_the_first_author(house: FallingWiki) -> None:
    wiki, owner = house.wiki, owner_of_account("Rita")
    rita = visitor_of(Directory(wiki.rows, house.clock).make("Rita", status="active"), "")
    files = GuardedWiki(wiki, rita).files("Theirs", [owner])
    writer = files.writer(files.begin("a.txt", owner))
    writer.write_piece(b"hers")
    files.commit(files.settle(writer.finish_part()))
    wiki.save("Theirs", "By another.", author="Eve", signed="account", base=0)
    wiki.save("Theirs", "By Rita.", author="Rita", signed="account", base=1)
    wiki.mover.hide("Theirs", 1, hidden=True)
    assert (adopt(house), wiki.files.files_of("Theirs")) == (0, {})


def test_a_page_that_was_deleted_gets_its_files_when_it_is_back(house: FallingWiki) -> None:
    save_and_fall(house)
    house.wiki.mover.delete("New", ADA)
    assert adopt(house) == 0
    house.wiki.save("New", "Another page.", author="Eve", base=0)
    assert (adopt(house), house.wiki.files.files_of("New")) == (0, {})
    house.wiki.mover.delete("New", ADA)
    first = next(one for one in deleted(house.wiki.rows, "New") if one.by == "Ada" and one.number == 1)
    house.wiki.mover.undelete("New", first.row, ADA)
    assert adopt(house) == 2
    whole(house)


def test_a_noted_save_that_proves_nothing_any_more_is_found_and_removed(house: FallingWiki) -> None:
    assert house.fall("save noted", save_and_adopt)
    for one in house.wiki.files.waiting.of("New", [OWNER]):
        house.wiki.files.abandon(one)
    (row,) = waiting(house.wiki)
    assert check(house.wiki, clock=house.clock).differences == ()
    house.clock.now += GRACE_MS + COMMIT_MS
    assert [(one.kind, one.row) for one in check(house.wiki, clock=house.clock).differences] == [(Kind.STALE, row)]
    check(house.wiki, repair=True, clock=house.clock)
    assert waiting(house.wiki) == []


def test_who_comes_late_for_an_upload_brings_nothing_of_it_back(house: FallingWiki) -> None:
    files = house.wiki.files
    found = files.waiting.of("New", [OWNER])
    for one in found:
        files.abandon(one)
        with pytest.raises(UploadGone):
            files.waiting.take(one)
    assert (len(found), waiting(house.wiki)) == (2, [])
