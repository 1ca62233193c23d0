"""Metadata of pictures: all of it goes, the picture and its orientation stay, however the stream is cut."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.files.picture_metadata import (
    MINIMAL_BYTES,
    REMOVABLE,
    DamagedPicture,
    MetadataRemover,
    minimal_exif,
    orientation_of,
)

SECRET = b"GPS 52.5163 N 13.3777 E, camera of Ada"


def tiff(orientation: int, order: str = "<") -> bytes:
    """Return an EXIF with an entry before and one behind the orientation, and a secret in its values."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    entries = [
        (0x010F, 2, len(SECRET), 50),
        (0x0112, 3, 1, orientation if order == "<" else orientation << 16),
        (0x8825, 4, 1, 90),
    ]
    packed = b"".join(struct.pack(order + "HHII", *entry) for entry in entries)
    return head + struct.pack(order + "H", 3) + packed + struct.pack(order + "I", 0) + SECRET + bytes(60)


def segment(code: int, content: bytes) -> bytes:
    return bytes((0xFF, code)) + struct.pack(">H", len(content) + 2) + content


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def riff(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


FRAME = segment(0xC0, b"\x08\x00\x14\x00\x1e\x01\x01\x11\x00")  # 30 wide, 20 high
ICC = segment(0xE2, b"ICC_PROFILE\0\1\1profile")
ADOBE = segment(0xEE, b"Adobe\0d\0\0\0\0\0")
SCAN = segment(0xDA, b"\x01\x01\x00\x00\x3f\x00") + b"\x12\xff\x00\xff\xd0\x34\xff\x00\x56"
TABLE = segment(0xDB, bytes(65))
EXIF = segment(0xE1, b"Exif\0\0" + tiff(6))
JFIF = segment(0xE0, b"JFIF\0\1\2\0\0\1\0\1\1\1" + SECRET[:3])
HIDDEN = [
    segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + SECRET),
    segment(0xE2, b"MPF\0" + SECRET),
    segment(0xED, b"Photoshop 3.0\0" + SECRET),
    segment(0xFE, SECRET),
    segment(0xEF, SECRET),
    segment(0xE0, b"JFXX\0" + SECRET),
    segment(0xEE, SECRET),
]
KEPT_EXIF = segment(0xE1, b"Exif\0\0" + minimal_exif(6))
JPEG = b"\xff\xd8" + JFIF + EXIF + b"".join(HIDDEN) + ICC + ADOBE + b"\xff\xff" + TABLE + FRAME
JPEG += SCAN + segment(0xC4, b"table") + HIDDEN[3] + SCAN + b"\xff\xd9" + SECRET + JFIF
CLEAN_JPEG = b"\xff\xd8" + segment(0xE0, b"JFIF\0\1\2\0\0\1\0\1\0\0") + KEPT_EXIF + ICC + ADOBE + TABLE + FRAME
CLEAN_JPEG += SCAN + segment(0xC4, b"table") + SCAN + b"\xff\xd9"

PNG_HEAD = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 30, 20, 8, 2, 0, 0, 0))
PIXELS = chunk(b"pHYs", bytes(9)) + chunk(b"IDAT", b"pixels") + chunk(b"IDAT", b"more")
PNG = PNG_HEAD + chunk(b"tEXt", SECRET) + chunk(b"eXIf", tiff(8, ">")) + chunk(b"prVt", SECRET) + PIXELS
PNG += chunk(b"tIME", bytes(7)) + chunk(b"iTXt", SECRET) + chunk(b"IEND", b"") + SECRET
CLEAN_PNG = PNG_HEAD + chunk(b"eXIf", minimal_exif(8)) + PIXELS + chunk(b"IEND", b"")

VP8X = struct.pack("<B3xI", 0x2C, 29)[:7] + struct.pack("<I", 19)[:3]
LOSSLESS = webp_chunk(b"VP8L", b"\x2f" + struct.pack("<I", 29 | 19 << 14) + b"pixels")
WEBP = riff(webp_chunk(b"VP8X", VP8X), LOSSLESS, webp_chunk(b"EXIF", tiff(3)), webp_chunk(b"XMP ", SECRET)) + SECRET
CLEAN_WEBP = riff(
    webp_chunk(b"VP8X", b"\x28" + VP8X[1:]),
    LOSSLESS,
    webp_chunk(b"EXIF", minimal_exif(3) + bytes(len(tiff(3)) - MINIMAL_BYTES)),
    webp_chunk(b"JUNK", bytes(len(SECRET))),
)
CASES = {
    "image/jpeg": (JPEG, CLEAN_JPEG, 6, (20, 30)),
    "image/png": (PNG, CLEAN_PNG, 8, (20, 30)),
    "image/webp": (WEBP, CLEAN_WEBP, 3, (30, 20)),
}


def removed(media_type: str, content: bytes, sizes: list[int] | None = None) -> tuple[bytes, MetadataRemover]:
    remover, out, rest = MetadataRemover(media_type), b"", content
    for size in sizes or [len(content)]:
        out += remover.feed(rest[:size])
        rest = rest[size:]
    out += remover.feed(rest)
    return out + remover.finish(), remover


@pytest.mark.parametrize("media_type", CASES)
def test_all_metadata_goes_but_the_orientation(media_type: str) -> None:
    content, clean, orientation, size = CASES[media_type]
    found, remover = removed(media_type, content)
    assert found == clean
    assert SECRET[:12] not in found
    assert (remover.orientation, remover.size) == (orientation, size)
    assert remover.removed_bytes >= 2 * len(SECRET)
    again, remover = removed(media_type, clean)
    assert again == clean
    assert remover.orientation == orientation


@pytest.mark.parametrize("media_type", CASES)
def test_the_pieces_of_the_stream_do_not_matter(media_type: str) -> None:
    content, clean, _, _ = CASES[media_type]
    assert removed(media_type, content, [1] * len(content))[0] == clean
    rng = random.Random(39)
    for _ in range(50):
        assert removed(media_type, content, [rng.randint(1, 40) for _ in range(40)])[0] == clean


@pytest.mark.parametrize("media_type", CASES)
def test_a_picture_that_is_cut_or_changed_anywhere_keeps_no_secret(media_type: str) -> None:
    content = CASES[media_type][0]
    for length in range(len(content)):
        _tried(media_type, content[:length])
    rng = random.Random(391)
    for _ in range(400):
        broken = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(0, content.index(SECRET))  # within the secret itself a change proves nothing
            broken[at] = rng.randrange(256)
        _tried(media_type, bytes(broken), may_keep=True)


def _tried(media_type: str, content: bytes, *, may_keep: bool = False) -> None:
    try:
        found, _ = removed(media_type, content)
    except DamagedPicture:
        return
    assert may_keep or SECRET[:12] not in found


@settings(max_examples=150)
@given(st.sampled_from(sorted(REMOVABLE)), st.binary(max_size=60), st.integers(0, 40))
def test_any_bytes_are_read_to_an_end(media_type: str, rest: bytes, cut: int) -> None:
    start = CASES.get(media_type, (b"GIF89a", b"", 1, (0, 0)))[0][:cut]
    _tried(media_type, start + rest, may_keep=True)


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("image/jpeg", b"\xff\xd9"),
        ("image/jpeg", b"\xff\xd8\x00\x00"),
        ("image/jpeg", b"\xff\xd8\xff\xe1\x00\x01"),
        ("image/jpeg", b"\xff\xd8" + TABLE + b"\xff\xd8"),
        ("image/jpeg", b"\xff\xd8" + TABLE),
        ("image/jpeg", b"\xff\xd8\xff\x00"),
        ("image/png", PNG_HEAD),
        ("image/png", PNG_HEAD + chunk(b"ABCD", b"")),
        ("image/png", PNG_HEAD + b"\xff\xff\xff\xffIDAT"),
        ("image/png", PNG_HEAD + b"\0\0\0\0<b>>"),
        ("image/png", b"\x89PNG\r\n\x1a\n" + chunk(b"IDAT", bytes(13))),
        ("image/webp", riff(b"VP8L\xff\xff\xff\xff")),
        ("image/webp", riff(LOSSLESS, b"abc")),
        ("image/webp", b"RIFF\x04\0\0\0WAVE"),
        ("image/webp", b"RIFF\xff\0\0\0WEBP"),
    ],
)
def test_a_structure_that_cannot_be_followed_is_refused(media_type: str, content: bytes) -> None:
    with pytest.raises(DamagedPicture):
        removed(media_type, content)


def test_an_upright_picture_gets_no_exif() -> None:
    plain = b"\xff\xd8" + TABLE + FRAME + SCAN + b"\xff\xd9"
    with_exif = b"\xff\xd8" + segment(0xE1, b"Exif\0\0" + tiff(1)) + plain[2:]
    assert removed("image/jpeg", with_exif)[0] == plain
    assert removed("image/jpeg", plain[:-3])[0] == plain[:-3], "one that ends within its picture is taken"


def test_a_picture_without_metadata_is_unchanged() -> None:
    for media_type, content in (("image/webp", riff(LOSSLESS)), ("image/png", PNG_HEAD + PIXELS + chunk(b"IEND", b""))):
        found, remover = removed(media_type, content)
        assert found == content
        assert (remover.size, remover.removed_bytes) == ((30, 20), 0)


def test_a_gif_is_copied_and_measured() -> None:
    content = b"GIF89a\x1e\x00\x14\x00\x00\x00\x00,\xff\x01\xff;" + bytes(9)
    found, remover = removed("image/gif", content, [1] * 5)
    assert found == content
    assert remover.size == (30, 20)


def test_orientations() -> None:
    for order in "<>":
        assert [orientation_of(tiff(value, order)) for value in (1, 3, 6, 8, 0, 9)] == [1, 3, 6, 8, 1, 1]
    assert [orientation_of(minimal_exif(value)) for value in range(1, 9)] == list(range(1, 9))
    assert minimal_exif(6).hex() == "49492a0008000000010012010300010000000600000000000000"
    for damaged in (b"", b"II*\0", b"XX*\0" + bytes(20), b"II*\0\xff\xff\xff\xff" + bytes(9), tiff(6)[:20]):
        assert orientation_of(damaged) == 1


@settings(max_examples=100)
@given(st.binary(max_size=40), st.sampled_from([b"II*\0", b"MM\0*"]))
def test_any_exif_is_read_to_an_end(rest: bytes, order: bytes) -> None:
    assert 1 <= orientation_of(order + rest) <= 8


def test_a_long_stream_needs_little_memory() -> None:
    remover, most = MetadataRemover("image/png"), 0
    remover.feed(PNG_HEAD + struct.pack(">I", 200 * 65_536) + b"IDAT")
    for _ in range(200):
        remover.feed(bytes(65_536))
        most = max(most, len(remover._buffer), len(remover._out))
    assert most == 0


# --- real pictures -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given_options"),
    [("JPEG", {}), ("JPEG", {"progressive": True}), ("PNG", {}), ("WEBP", {}), ("WEBP", {"lossless": True})],
)
def test_pictures_of_a_real_encoder_keep_every_pixel(kind: str, given_options: dict[str, Any]) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed: real pictures were not tried")
    rng = random.Random(7)
    picture = images.frombytes("RGB", (61, 40), rng.randbytes(61 * 40 * 3))
    exif = images.Exif()
    exif[0x0112], exif[0x010F] = 6, SECRET.decode()
    exif.get_ifd(0x8825)[1] = "N"
    written = io.BytesIO()
    picture.save(written, kind, exif=exif, **given_options)
    content = written.getvalue()
    assert SECRET in content
    clean, remover = removed(f"image/{kind.lower()}", content, [100, 1000])
    assert SECRET not in clean
    assert remover.size == (40, 61)
    before, after = images.open(io.BytesIO(content)), images.open(io.BytesIO(clean))
    assert before.tobytes() == after.tobytes()
    assert dict(after.getexif()) == {0x0112: 6}
