"""Smaller versions of pictures: widths, orientation, transparency, and pictures of which none are made."""

from __future__ import annotations

import random
import zlib
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from columnar.triggers.api import Change
from wikka_port.files.file_rows import BLOB_STATE, BLOBS, CHUNK, CHUNKS, CurrentFile
from wikka_port.files.thumbnail_trigger import pictures
from wikka_port.files.thumbnails import (
    DATA,
    NONE,
    PIXELS_MAX,
    WIDTHS,
    NoThumbnails,
    Thumbnail,
    all_rows,
    rows_of,
    smaller_versions,
    thumbnail_in,
    thumbnail_row,
    widths_of,
)

SHA = "ab" * 32


def picture(width: int, height: int, form: str = "JPEG", mode: str = "RGB", **saving: Any) -> bytes:
    """A picture whose left third is red and whose rest is blue, with noise, so that it does not compress to nothing."""
    image = Image.new(mode, (width, height), (0, 0, 255) if mode == "RGB" else (0, 0, 255, 0))
    image.paste((255, 0, 0) if mode == "RGB" else (255, 0, 0, 255), (0, 0, width // 3, height))
    noise = random.Random(7)
    for _ in range(2_000):
        image.putpixel((noise.randrange(width), noise.randrange(height)), (noise.randrange(256),) * len(mode))
    out = BytesIO()
    image.save(out, form, **saving)
    return out.getvalue()


def dict_of(content: bytes, media_type: str) -> dict[int, Thumbnail]:
    return dict(smaller_versions(content, media_type))


def dict_of_rows(sha256: str, content: bytes, media_type: str) -> dict[bytes, dict[bytes, bytes]]:
    return dict(rows_of(sha256, content, media_type))


def opened(content: bytes) -> Any:
    return Image.open(BytesIO(content), formats=["WEBP"])


def current(media_type: str, width: int, height: int, size_bytes: int = 1000) -> CurrentFile:
    return CurrentFile(1, "t", SHA, size_bytes, media_type, width, height)


@pytest.mark.parametrize(("form", "media_type"), [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp")])
def test_a_picture_gets_the_widths_below_its_own(form: str, media_type: str) -> None:
    found = dict_of(picture(700, 350, form), media_type)
    assert list(found) == [320, 640]
    for width, one in found.items():
        image = opened(one.content)
        assert image.size == (width, width // 2)
        red, blue = image.convert("RGB").getpixel((width // 10, 10)), image.convert("RGB").getpixel((width - 10, 10))
        assert red[0] > 200 > 60 > red[2]
        assert blue[2] > 200 > 60 > blue[0]
        assert one.media_type == "image/webp"


def test_a_picture_that_lies_on_its_side_stands() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    found = dict_of(picture(1400, 700, exif=exif), "image/jpeg")
    assert list(found) == [320, 640], "it is 700 wide as it is seen"
    image = opened(found[640].content)
    assert image.size == (640, 1280)
    assert image.convert("RGB").getpixel((320, 20))[0] > 200, "the left third is on top"


def test_transparency_is_kept() -> None:
    found = dict_of(picture(400, 100, "PNG", "RGBA"), "image/png")
    image = opened(found[320].content).convert("RGBA")
    assert image.getpixel((300, 40))[3] < 30
    assert image.getpixel((20, 40))[3] > 225


def test_a_small_picture_gets_none() -> None:
    assert dict_of(picture(320, 100), "image/jpeg") == {}
    assert dict_of_rows(SHA, picture(320, 100), "image/jpeg") == {}
    assert dict_of(b"GIF89a", "image/gif") == {}


def huge_png(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is huge."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (huge_png(1_000_000, 1_000_000), "image/png"),
        (huge_png(4_001, 4_000), "image/png"),
        (huge_png(700, 700), "image/png"),  # its points are missing
        (picture(700, 350)[:2000], "image/jpeg"),
        (picture(700, 350, "PNG"), "image/jpeg"),
        (b"", "image/webp"),
        (picture(700, 350, "WEBP", save_all=True, append_images=[Image.new("RGB", (700, 350))]), "image/webp"),
    ],
)
def test_a_damaged_huge_or_animated_picture_is_tried_once(content: bytes, media_type: str) -> None:
    with pytest.raises(NoThumbnails):
        dict_of(content, media_type)
    rows = dict_of_rows(SHA, content, media_type)
    assert list(rows) == [thumbnail_row(SHA, 0)]
    assert rows[thumbnail_row(SHA, 0)][NONE]
    assert thumbnail_in(rows[thumbnail_row(SHA, 0)]) is None


def test_random_damage_raises_nothing_else() -> None:
    seed = 20261129
    chance = random.Random(seed)
    wholes = [(picture(400, 120, form), f"image/{form.lower()}") for form in ("JPEG", "PNG", "WEBP")]
    refused = 0
    for _ in range(150):
        content, media_type = chance.choice(wholes)
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 30)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            dict_of(bytes(damaged), media_type)
        except NoThumbnails:
            refused += 1
    assert refused > 20, f"seed {seed}"


def test_a_row_has_what_is_smaller_than_the_file() -> None:
    content = picture(700, 350, "PNG")
    rows = dict_of_rows(SHA, content, "image/png")
    assert set(rows) <= set(all_rows(SHA))
    assert all(len(cells[DATA]) < len(content) for cells in rows.values())
    flat = BytesIO()
    Image.new("RGB", (700, 350)).save(flat, "PNG")
    rows = dict_of_rows(SHA, flat.getvalue(), "image/png")
    assert all(len(cells[DATA]) < len(flat.getvalue()) for cells in rows.values())


def test_pages_offer_the_widths_that_are_made() -> None:
    assert widths_of(current("image/jpeg", 4000, 3000)) == WIDTHS
    assert widths_of(current("image/png", 640, 3000)) == (320,)
    assert widths_of(current("image/gif", 4000, 3000)) == ()
    assert widths_of(current("image/svg+xml", 4000, 3000)) == ()
    assert widths_of(current("image/png", 0, 0)) == ()
    assert widths_of(current("image/png", PIXELS_MAX["image/png"], 2)) == ()
    assert widths_of(current("image/jpeg", 4000, 3000, 50_000_000)) == ()


def test_a_whole_picture_over_the_bound_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    content = picture(700, 350, "PNG")
    assert dict_of(content, "image/png")
    monkeypatch.setitem(PIXELS_MAX, "image/png", 700 * 350 - 1)
    with pytest.raises(NoThumbnails, match="700 x 350 points are over the bound"):
        dict_of(content, "image/png")


class Chunks:
    """A client of a store with one chunk."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.rows: list[bytes] = []

    def table(self, name: bytes) -> Chunks:
        assert name == CHUNKS
        return self

    def row(self, row: bytes) -> dict[bytes, bytes]:
        self.rows.append(row)
        return {CHUNK: self.content}


@pytest.mark.parametrize(
    ("before", "now", "made"),
    [
        ("", "live:a", True),
        ("gone:a", "live:b", True),
        ("live:a", "live:b", True),  # a damaged content was replaced
        ("sweeping:a", "live:a", False),
        ("live:a", "sweeping:a", False),
    ],
)
def test_a_content_is_decoded_when_it_comes_to_its_place(before: str, now: str, made: bool) -> None:
    content = picture(400, 100)

    def cells(state: str) -> dict[bytes, bytes]:
        life, _, place = state.partition(":")
        full = b"%s:%s:%d:" % (life.encode(), place.encode() * 16, len(content))
        return {BLOB_STATE: full} if state else {}

    client = Chunks(content)
    change = Change(BLOBS, SHA.encode(), 1, "", (), cells(now), cells(before))
    effects = list(pictures(change, client))
    assert [type(one).__name__ for one in effects] == (["Put"] if made else [])
    assert bool(client.rows) is made


def test_the_smaller_versions_of_a_content_that_is_gone_go() -> None:
    change = Change(BLOBS, SHA.encode(), 1, "", (), {BLOB_STATE: b"gone:%s:1:m" % (b"a" * 16)}, {})
    assert {one.row for one in pictures(change, Chunks(b""))} == set(all_rows(SHA))
