"""Smaller versions of pictures in a store: made by the trigger, or by the application, and sent by the wiki."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image

from tests.support.file_forms import upload
from tests.support.stored_wiki import stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port.consistency import check
from wikka_port.differences import Kind
from wikka_port.files.thumbnails import DATA, THUMBS, TYPE, all_rows, thumbnail_row


@pytest.fixture(scope="module", params=["triggers", "application"])
def web(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WikiClient]:
    with stored_wiki(tmp_path_factory.mktemp("pictures"), request.param) as wiki:
        wiki.save("HomePage", "See [[Town.png]].", author="Ann", base=0)
        yield WikiClient(wiki)


def town(width: int, height: int) -> bytes:
    image = Image.effect_noise((width, height), 80).convert("RGB")
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def settled(web: WikiClient) -> None:
    if web.wiki.indexes == "triggers":
        assert web.wiki.store.run(lambda c: c.triggers.wait("wiki-pictures", timeout_ms=30_000))


def test_a_picture_is_sent_in_the_width_that_is_wanted(web: WikiClient) -> None:
    whole = town(960, 320)
    assert upload(web, ("Town.png", whole)).status_code == 303
    settled(web)
    page = web.get("/HomePage").text
    assert "Town.png?v=1&amp;w=320 320w, /HomePage/files/Town.png?v=1&amp;w=640 640w" in page
    for width in (320, 640):
        got = web.get(f"/HomePage/files/Town.png?v=1&w={width}")
        assert (got.status_code, got.headers["Content-Type"]) == (200, "image/webp")
        assert Image.open(BytesIO(got.data)).size == (width, round(width / 3))
        assert "immutable" in got.headers["Cache-Control"]
        again = web.get(f"/HomePage/files/Town.png?v=1&w={width}", headers={"If-None-Match": got.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")
    for query in ("v=1", "v=1&w=1280", "v=1&w=321", "v=1&w=x"):
        assert web.get(f"/HomePage/files/Town.png?{query}").data == whole
    assert "immutable" not in web.get("/HomePage/files/Town.png?v=1&w=1280").headers["Cache-Control"]


def test_equal_pictures_have_their_smaller_versions_once(web: WikiClient) -> None:
    web.wiki.save("Other", "A text.", author="Ann", base=0)
    whole = town(400, 100)
    upload(web, ("one.png", whole))
    upload(web, ("two.png", whole), page="/Other")
    settled(web)
    sha256 = web.wiki.page("Other").files["two.png"].sha256
    rows = web.wiki.rows.rows(THUMBS, all_rows(sha256))
    assert [row[-5:] for row in rows] == [b"00320"]
    assert web.get("/Other/files/two.png?v=1&w=320").data == web.get("/HomePage/files/one.png?v=1&w=320").data != whole


def test_a_picture_that_cannot_be_decoded_is_sent_as_it_is(web: WikiClient) -> None:
    damaged = town(700, 300)[:40_000]
    assert upload(web, ("bad.png", damaged), **{"keep-metadata": "yes"}).status_code == 303
    settled(web)
    got = web.get("/HomePage/files/bad.png?v=1&w=320")
    assert (got.status_code, got.data) == (200, damaged)
    sha256 = web.wiki.page("HomePage").files["bad.png"].sha256
    rows = web.wiki.rows.rows(THUMBS, all_rows(sha256))
    assert not rows.keys() - set(all_rows(sha256)[:1]), "no smaller version"


def test_a_check_makes_what_is_missing_and_removes_what_is_of_no_content(web: WikiClient) -> None:
    upload(web, ("Lost.png", town(500, 100)))
    settled(web)
    wiki = web.wiki
    sha256 = wiki.page("HomePage").files["Lost.png"].sha256
    before = wiki.rows.rows(THUMBS, all_rows(sha256))
    assert check(wiki).differences == ()
    wiki.rows.delete_rows(THUMBS, list(before))
    stale = thumbnail_row("0" * 64, 320)
    wiki.rows.put(THUMBS, stale, {DATA: b"x", TYPE: b"image/webp"})
    found = {(one.kind, one.row) for one in check(wiki).differences}
    assert found == {(Kind.MISSING, sha256.encode()), (Kind.STALE, stale)}
    assert check(wiki, repair=True).left == ()
    assert wiki.rows.rows(THUMBS, all_rows(sha256)) == before
    assert wiki.rows.row(THUMBS, stale) == {}
