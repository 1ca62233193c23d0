"""Types by content: what a file claims to be counts for nothing, and no disguise is shown by a browser."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.files import content_types
from wikka_port.files.content_types import BY_ENDING, NotAccepted, check_accepted, fitting_name, recognised, type_of

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x10\x00\x00\x00\x10\x08\x02\x00\x00\x00"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
GIF = b"GIF89a\x10\x00\x10\x00\x00\x00\x00,\x00\x00\x00\x00"
WEBP = b"RIFF\x24\x00\x00\x00WEBPVP8L"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<!DOCTYPE html><script>alert(1)</script>"


def zipped(names: list[str], *, stored: bytes = b"", described: bool = False) -> bytes:
    buffer = io.BytesIO()
    out: io.IOBase = buffer
    if described:
        out = Unseekable(buffer)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        if stored:
            archive.writestr(zipfile.ZipInfo("mimetype"), stored)
        for name in names:
            archive.writestr(name, b"content of " + name.encode() * 20)
    return buffer.getvalue()


class Unseekable(io.RawIOBase):
    """A stream: sizes follow the contents, as in files that servers write."""

    def __init__(self, target: io.BytesIO) -> None:
        self.target = target

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        return self.target.write(data)


WORD = ["[Content_Types].xml", "_rels/.rels", "word/document.xml"]


@pytest.mark.parametrize(
    ("head", "ending"),
    [
        (PNG, "png"),
        (JPEG, "jpg"),
        (b"\xff\xd8\xff\xe1\x12\x34Exif\0\0", "jpg"),
        (b"\xff\xd8\xff\xdb\0\x43", "jpg"),
        (GIF, "gif"),
        (b"GIF87a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,", "gif"),
        (WEBP, "webp"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "wav"),
        (b"II*\0\x08\0\0\0", "tif"),
        (b"%PDF-1.7\n", "pdf"),
        (b"\x1f\x8b\x08\0", "gz"),
        (b"BZh91AY&SY", "bz2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "doc"),
        (b"ID3\x04\0", "mp3"),
        (b"\xff\xfb\x90\x44", "mp3"),
        (b"OggS\0\x02", "ogg"),
        (b"\x1a\x45\xdf\xa3", "webm"),
        (b"\0\0\0\x20ftypisom\0\0\2\0", "mp4"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "heic"),
        (b"\0\0\0\x1cftypavif\0\0\0\0", "avif"),
        (b"\0\0\0\x14ftypqt  ", "mov"),
        (zipped(["a.txt"]), "zip"),
        (zipped(WORD), "docx"),
        (zipped(["_rels/.rels", "docProps/app.xml", "xl/workbook.xml", "[Content_Types].xml"]), "xlsx"),
        (zipped([*WORD[:2], "ppt/presentation.xml"]), "pptx"),
        (zipped(WORD, described=True), "docx"),
        (zipped(["META-INF/MANIFEST.MF", "A.class"]), "zip"),
        (zipped(["word/a.txt"]), "zip"),
        (zipped([], stored=b"application/vnd.oasis.opendocument.text"), "odt"),
        (zipped([], stored=b"application/epub+zip"), "epub"),
        (zipped([], stored=b"text/html"), "zip"),
        (zipped([]), "zip"),
        (b"plain words", "txt"),
        ("grüße 日本".encode(), "txt"),
        (b"", "txt"),
        ("\ufeffwords".encode("utf-16-le"), "txt"),
        (b"\xef\xbb\xbfwords", "txt"),
        (SVG, "svg"),
        (b"<?xml version='1.0'?>\n<!-- x --><!DOCTYPE svg PUBLIC ''><svg/>", "svg"),
        (b"<?xml version='1.0'?><!DOCTYPE s [<!ENTITY a 'b'>]><svg:svg/>", "svg"),
        (b"\n <!-- hello --> <SVG>", "svg"),
        (("\ufeff" + SVG.decode()).encode("utf-16-be"), "svg"),
        (HTML, "html"),
        (b"  \n<!-- a --><script >", "html"),
        (b"<!-- no end <script>", "txt"),
        (("\ufeff" + HTML.decode()).encode("utf-16-le"), "html"),
        (b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>", "html"),
        (b"<?xml version='1.0'?><feed/>", "xml"),
        (b"<3 this", "txt"),
        (b"\xff\xfe", "txt"),
        (b"a <b>", "txt"),
    ],
)
def test_types_by_content(head: bytes, ending: str) -> None:
    assert recognised(head) == BY_ENDING[ending]


@pytest.mark.parametrize(
    "head",
    [
        b"MZ\x90\0\x03\0\0\0",
        b"\x7fELF\x02\x01\x01\0",
        b"\xca\xfe\xba\xbe\0\0\0\x34",
        bytes(100),
        b"caf\xe9",  # Latin 1: a browser would guess
        HTML.decode().encode("utf-16-le"),  # without its mark
        b"+ADw-script+AD4-\x00",
        b"\x89PNG\r\n\x1a\n" + HTML,
        b"GIF89a/*" + bytes(6) + b"*/=1",
        b"\xff\xd8\xff\x00",
        b"\0\0\0\x20ftypevil",
    ],
)
def test_unknown_content_is_refused_whatever_its_name(head: bytes) -> None:
    assert recognised(head) is None
    for name in ("a.png", "a.txt", "a.zip"):
        with pytest.raises(NotAccepted, match="does not know this kind"):
            type_of(head, name)


@pytest.mark.parametrize("name", ["cat.png", "cat.jpg", "cat.pdf", "cat.zip"])
@pytest.mark.parametrize("head", [SVG, HTML, b"\xef\xbb\xbf" + SVG])
def test_markup_under_another_name_is_refused(head: bytes, name: str) -> None:
    with pytest.raises(NotAccepted, match="its content is"):
        fitting_name(name, type_of(head, name))


@pytest.mark.parametrize(
    ("head", "name", "fitted"),
    [
        (PNG, "a.png", "a.png"),
        (PNG, "a", "a.png"),
        (PNG, "IMG_1.JPEG", "IMG_1.png"),  # phones do so
        (WEBP, "a.jpg", "a.webp"),
        (JPEG, "a.jpeg", "a.jpeg"),
        (PNG, "holiday v2.1", "holiday v2.1.png"),
        (b"echo", "run.bat", "run.bat.txt"),
        (b"echo", "run", "run.txt"),
        (zipped(["A.class"]), "a.jar", "a.jar.zip"),
        (zipped(["odd/order.xml"]), "a.docx", "a.docx"),
        (b"\x1f\x8b\x08\0", "a.tar.gz", "a.tar.gz"),
        (b"a,b\n", "a.csv", "a.csv"),
        (HTML, "a.txt", "a.txt"),
        (b"<div>a</div>\n# A", "README.md", "README.md"),
        (b"print(1)", "a.py", "a.py"),
        (b"<?xml version='1.0'?><kml/>", "a.kml", "a.kml"),
    ],
)
def test_names_that_fit_or_are_made_to(head: bytes, name: str, fitted: str) -> None:
    assert fitting_name(name, type_of(head, name)) == fitted


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (PNG, "a.pdf"),
        (b"%PDF-1", "a.png"),
        (b"words", "a.png"),
        (PNG, "a.svg"),
        (b"GIF89a=1;alert(1)//", "a.gif"),  # a script that begins like a GIF
    ],
)
def test_other_disagreements_are_refused(head: bytes, name: str) -> None:
    with pytest.raises(NotAccepted, match="Give it the ending"):
        fitting_name(name, type_of(head, name))


def test_a_text_that_begins_with_markup_is_no_text_that_a_browser_shows() -> None:
    assert type_of(b"words", "a.txt").inline
    assert type_of(b"words <script>", "a.md").sent_type() == "text/plain; charset=utf-8"
    for head in (HTML, b"<?xml version='1.0'?><a/>"):
        for name in ("a.txt", "a.md", "a.csv", "a.html", "a.json", "a"):
            found = type_of(head, name)
            assert not found.inline
            assert found.sent_type() == content_types.OPAQUE


def test_no_file_is_sent_as_a_script_or_a_style() -> None:
    for one in content_types.TYPES:
        assert not any(word in one.sent_type() for word in ("script", "css", "html", "text/xml", "application/xml"))
    assert not BY_ENDING["svg"].inline
    assert not BY_ENDING["pdf"].inline


def test_the_site_says_which_types_it_takes() -> None:
    check_accepted("a.jpeg", BY_ENDING["jpg"], content_types.DEFAULT_ENDINGS)
    check_accepted("a.jpeg", BY_ENDING["jpg"], {"jpg"})
    check_accepted("a.heic", BY_ENDING["heic"], {content_types.ALL})
    with pytest.raises(NotAccepted, match="takes no files of the type"):
        check_accepted("a.js", type_of(b"let a", "a.js"), content_types.DEFAULT_ENDINGS)
    with pytest.raises(NotAccepted, match="Send it as JPEG"):
        check_accepted("a.heic", BY_ENDING["heic"], content_types.DEFAULT_ENDINGS)


def test_a_character_cut_at_the_end_of_the_sniffed_bytes_is_no_fault() -> None:
    assert recognised(b"a" * (content_types.SNIFFED_BYTES - 1) + "ü".encode()) == BY_ENDING["txt"]
    assert recognised("ü".encode() * 3 + b"\xc3") is None, "unless the file ends there"
    assert content_types.text_of("üüü".encode()) == ("üüü", "utf-8")
    assert content_types.text_of("\ufeffa".encode("utf-16-le")) == ("a", "utf-16")


def test_a_real_png_and_a_bomb_of_zip_headers() -> None:
    row = zlib.compress(b"\0\0\0\0")
    idat = struct.pack(">I", len(row)) + b"IDAT" + row
    assert recognised(PNG + b"\0\0\0\0" + idat) == BY_ENDING["png"]
    assert recognised(b"PK\3\4" + b"\xff" * 70_000) == BY_ENDING["zip"]
    assert recognised((b"PK\3\4" + bytes(26)) * 2_000) == BY_ENDING["zip"]


STARTS = [
    PNG,
    JPEG,
    GIF,
    WEBP,
    SVG,
    HTML,
    b"PK\3\4",
    b"RIFF",
    b"\0\0\0\x20ftyp",
    b"II*\0",
    b"BM",
    b"<?xml",
    b"\xff\xfe",
    b"",
]


@settings(max_examples=200)
@given(st.sampled_from(STARTS), st.integers(0, 30), st.binary(max_size=60))
def test_any_bytes_are_read_to_an_end(start: bytes, cut: int, rest: bytes) -> None:
    recognised(start[:cut] + rest)
