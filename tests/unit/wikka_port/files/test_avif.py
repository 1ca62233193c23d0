"""AVIF pictures: their metadata goes, their size is known, and they get smaller versions."""

from __future__ import annotations

import random
from io import BytesIO
from struct import pack

import pytest
from PIL import Image, features

from wikka_port.files.avif_boxes import EMPTY_EXIF, BadBox, cleaned
from wikka_port.files.content_types import BY_ENDING, DEFAULT_ENDINGS, NotAccepted, check_accepted, recognised
from wikka_port.files.picture_metadata import DamagedPicture, MetadataRemover
from wikka_port.files.thumbnails import smaller_versions

pytestmark = pytest.mark.skipif(not features.check("avif"), reason="this Pillow was built without AVIF")
CAMERA, PLACE = b"Secret camera 7", b"<x:xmpmeta>47.3769 N, 8.5417 E</x:xmpmeta>"


def picture(width: int = 700, height: int = 350, orientation: int = 1, *, plain: bool = False) -> bytes:
    image = Image.new("RGB", (width, height), (200, 30, 30))
    image.paste((20, 20, 220), (0, 0, width // 2, height))
    exif = Image.Exif()
    exif[0x010F] = CAMERA.decode()
    exif[0x0112] = orientation
    out = BytesIO()
    given = {} if plain else {"exif": exif.tobytes(), "xmp": PLACE}
    image.save(out, "AVIF", **given)
    return out.getvalue()


def without(content: bytes, step: int = 1_000) -> tuple[bytes, MetadataRemover]:
    remover = MetadataRemover("image/avif")
    pieces = [remover.feed(content[at : at + step]) for at in range(0, len(content), step)]
    return b"".join(pieces) + remover.finish(), remover


@pytest.mark.parametrize("step", [1, 3, 64, 10_000])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_metadata_goes_and_the_picture_stays(step: int, orientation: int) -> None:
    content = picture(orientation=orientation)
    assert CAMERA in content
    assert PLACE in content
    kept, remover = without(content, step)
    assert (CAMERA in kept, PLACE in kept, len(kept)) == (False, False, len(content))
    assert remover.removed_bytes >= len(CAMERA) + len(PLACE)
    assert remover.size == ((350, 700) if orientation in (6, 8) else (700, 350))
    before, after = Image.open(BytesIO(content)), Image.open(BytesIO(kept))
    assert before.tobytes() == after.tobytes()
    assert after.getexif().get(0x010F) is None


def test_a_picture_without_metadata_is_copied() -> None:
    content = picture(plain=True)
    kept, remover = without(content)
    assert (kept, remover.removed_bytes, remover.size) == (content, 0, (700, 350))


@pytest.mark.parametrize("orientation", [1, 6])
def test_smaller_versions(orientation: int) -> None:
    kept, remover = without(picture(orientation=orientation))
    found = dict(smaller_versions(kept, "image/avif"))
    assert list(found) == [one for one in (320, 640) if one < remover.size[0]]
    for width, one in found.items():
        assert Image.open(BytesIO(one.content)).size == (width, round(width * remover.size[1] / remover.size[0]))


def test_any_damage_is_refused_or_hides_nothing() -> None:
    content, rng = picture(), random.Random(20261130)
    for _ in range(400):
        damaged = bytearray(content)
        for _byte in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(content))] = rng.randrange(256)
        try:
            kept, _remover = without(bytes(damaged))
        except DamagedPicture:
            continue
        assert len(kept) == len(damaged)
    for cut in range(1, len(content), 7):
        try:
            kept, _remover = without(content[:cut])
        except DamagedPicture:
            continue
        assert CAMERA not in kept


def box(kind: bytes, content: bytes) -> bytes:
    return pack(">I", len(content) + 8) + kind + content


def meta(*, kind: bytes = b"Exif", start: int, length: int, method: int = 0, more: bytes = b"") -> bytes:
    """The content of a box meta with a picture (item 1) and one more item (2)."""
    entries = b"".join(
        box(b"infe", pack(">IHH4s", 0x02000000, item, 0, one) + b"\0") for item, one in ((1, b"av01"), (2, kind))
    )
    places = b"".join(
        pack(">HHHHII", item, how, 0, 1, at, size)
        for item, how, at, size in ((1, 0, 5_000, 10), (2, method, start, length))
    )
    return b"".join(
        (
            bytes(4),
            box(b"pitm", pack(">IH", 0, 1)),
            box(b"iinf", pack(">IH", 0, 2) + entries),
            box(b"iloc", pack(">IHH", 0x01000000, 0x4400, 2) + places),
            more,
        )
    )


def test_items_that_are_no_pictures_are_erased() -> None:
    found = cleaned(meta(start=2_000, length=100))
    assert [(one.start, one.stop, one.content) for one in found.extents] == [(2_000, 2_100, EMPTY_EXIF)]
    assert cleaned(meta(kind=b"mime", start=2_000, length=100)).extents[0].content == b""
    assert cleaned(meta(kind=b"what", start=2_000, length=5)).extents[0].stop == 2_005
    assert cleaned(meta(kind=b"grid", start=2_000, length=100)).extents == ()
    unknown = box(b"uuid", b"a place and a camera")
    kept = cleaned(meta(start=2_000, length=100, more=unknown))
    assert (b"camera" in kept.content, kept.erased_bytes) == (False, 20)


@pytest.mark.parametrize(
    "content",
    [
        meta(start=2_000, length=0),
        meta(start=2_000, length=10, method=1),
        meta(start=2_000, length=10, method=2),
        meta(start=2_000, length=10)[:-3],
        bytes(4),
        bytes(4) + b"\0\0\0\4meta",
    ],
)
def test_metadata_that_cannot_be_found_or_erased_is_refused(content: bytes) -> None:
    with pytest.raises(BadBox):
        cleaned(content)


def test_metadata_before_its_index_or_outside_the_data_is_refused() -> None:
    head = box(b"ftyp", b"avif\0\0\0\0avif")
    for start in (0, 30, 20_000):
        index = box(b"meta", meta(start=start, length=100))
        film = head + index + box(b"mdat", bytes(6_000))
        if start == 20_000:
            film += box(b"mdat", bytes(14_000))
            assert len(film) > start
            with pytest.raises(DamagedPicture):
                without(film + bytes(4))
            continue
        with pytest.raises(DamagedPicture):
            without(film)
    for other in (head + box(b"moov", b"film"), head + box(b"meta", bytes(2_000_000)), b"\0\0\0\2ftyp"):
        with pytest.raises(DamagedPicture):
            without(other)


def test_the_wiki_takes_avif_and_says_how_to_send_a_photograph_of_an_iphone() -> None:
    found = recognised(picture())
    assert found is not None
    check_accepted("a.avif", found, DEFAULT_ENDINGS)
    with pytest.raises(NotAccepted, match="Most Compatible"):
        check_accepted("a.heic", BY_ENDING["heic"], DEFAULT_ENDINGS)
    check_accepted("a.heic", BY_ENDING["heic"], DEFAULT_ENDINGS | {"heic"})
