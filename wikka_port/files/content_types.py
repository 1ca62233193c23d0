"""(pure) The type of a file by its content, and the types that a wiki takes.

A type is recognised from the first SNIFFED_BYTES, never from the name, nor from the type that a browser states:

    signature   at the beginning of the file, with as much structure behind it as separates a picture from a text that
                begins like one: the size in a PNG's header chunk, the first marker of a JPEG, the box of an MP4
    archive     the first names in a ZIP: an OpenDocument or EPUB file begins with its type, Office's files have their
                parts in folders; any other is an archive
    text        valid UTF-8, or UTF-16 with its mark, without control characters; the name's ending chooses among the
                kinds of text, for their contents cannot be told apart
    markup      a text whose first element is one of HTML or SVG is of that type, whatever its name

A file is sent with the stored type, ``nosniff`` and ``Content-Security-Policy: sandbox`` (SANDBOX), so a file of two
types at once (a GIF that is a script, a PDF behind a picture) is only ever read as the recognised one.  Types with
``inline`` are shown by browsers; all others, among them all that can have script, are saved as downloads.

A name's ending must agree (``fitting_name``).  A picture under another picture's ending gets the right one, because
phones write such names.  Any other disagreement is refused: a PNG that is HTML is an attack or a mistake.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from wikka_port.files.file_names import ending_of, with_ending
from wikka_port.texts import N_, _

SNIFFED_BYTES: Final = 65_536  # Office's files name their parts this early
SANDBOX: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # of every answer with a file's content
ALL: Final = "all"
OPAQUE: Final = "application/octet-stream"
HEIC: Final = "image/heic"
_NO_HEIC: Final = N_(
    "This photograph is in the format HEIC, which few browsers show, and this wiki does not take it. Send it as JPEG: "
    "on an iPhone choose Settings, Camera, Formats, Most Compatible; or share the picture, which converts it."
)


@dataclass(frozen=True, slots=True)
class FileType:
    media_type: str
    endings: tuple[str, ...]  # the first is given to names without one
    picture: bool = False  # shown in pages
    inline: bool = False  # a browser may show it by itself
    text: bool = False  # searched, and sent with its character set
    default: bool = True  # taken unless the site says otherwise

    def sent_type(self, charset: str = "utf-8") -> str:
        """Return the Content-Type of a download.

        No file is sent with a type that a page of this site could load as a script or a style: the wiki's own policy
        allows both from its own addresses.
        """
        if not self.text:
            return self.media_type
        return f"text/plain; charset={charset}" if self.inline else OPAQUE


TYPES: Final = (
    FileType("image/png", ("png", "apng"), picture=True, inline=True),
    FileType("image/jpeg", ("jpg", "jpeg", "jpe", "jfif"), picture=True, inline=True),
    FileType("image/gif", ("gif",), picture=True, inline=True),
    FileType("image/webp", ("webp",), picture=True, inline=True),
    FileType("image/svg+xml", ("svg",), picture=True),  # within a page it runs no script; by itself it could
    FileType("image/avif", ("avif",), picture=True, inline=True),
    # Their places and cameras cannot be removed yet, so they are taken only where the site says so.
    FileType(HEIC, ("heic", "heif"), default=False),
    FileType("image/tiff", ("tif", "tiff"), default=False),
    FileType("image/bmp", ("bmp",)),
    FileType("image/x-icon", ("ico",)),
    FileType("application/pdf", ("pdf",)),
    FileType("text/plain", ("txt", "text", "log", "ini", "conf"), inline=True, text=True),
    FileType("text/csv", ("csv", "tsv"), inline=True, text=True),
    FileType("text/markdown", ("md", "markdown"), inline=True, text=True),
    FileType("application/json", ("json", "geojson", "ipynb"), text=True),
    FileType("text/x-source", ("py", "c", "h", "cpp", "rs", "go", "java", "sh", "sql", "yaml", "yml", "toml", "tex",
                               "diff", "patch", "bib", "ics", "vcf", "srt", "vtt", "gpx", "kml"), text=True),
    FileType("application/xml", ("xml", "xsd", "xsl", "drawio", "opml"), text=True),
    FileType("text/css", ("css",), text=True),
    FileType("text/javascript", ("js", "mjs"), text=True, default=False),
    FileType("text/html", ("html", "htm", "xhtml", "mhtml"), text=True),
    FileType("application/rtf", ("rtf",)),
    FileType("application/zip", ("zip",)),
    FileType("application/gzip", ("gz", "tgz")),
    FileType("application/x-bzip2", ("bz2",)),
    FileType("application/x-xz", ("xz",)),
    FileType("application/zstd", ("zst",)),
    FileType("application/x-7z-compressed", ("7z",)),
    FileType("application/vnd.openxmlformats-officedocument.wordprocessingml.document", ("docx",)),
    FileType("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ("xlsx",)),
    FileType("application/vnd.openxmlformats-officedocument.presentationml.presentation", ("pptx",)),
    FileType("application/vnd.oasis.opendocument.text", ("odt",)),
    FileType("application/vnd.oasis.opendocument.spreadsheet", ("ods",)),
    FileType("application/vnd.oasis.opendocument.presentation", ("odp",)),
    FileType("application/vnd.oasis.opendocument.graphics", ("odg",)),
    FileType("application/epub+zip", ("epub",)),
    FileType("application/x-ole-storage", ("doc", "xls", "ppt", "vsd")),  # Office before 2007; an installer is one, too
    FileType("audio/mpeg", ("mp3",), inline=True),
    FileType("audio/ogg", ("ogg", "oga", "opus"), inline=True),
    FileType("audio/wav", ("wav",), inline=True),
    FileType("audio/flac", ("flac",), inline=True),
    FileType("video/mp4", ("mp4", "m4v", "m4a"), inline=True),
    FileType("video/quicktime", ("mov",)),
    FileType("video/webm", ("webm", "mkv", "weba"), inline=True),
)  # fmt: skip
BY_MEDIA_TYPE: Final = {one.media_type: one for one in TYPES}
BY_ENDING: Final = {ending: one for one in TYPES for ending in one.endings}
assert len(BY_ENDING) == sum(len(one.endings) for one in TYPES), "an ending means one type"
PICTURE_TYPES: Final = frozenset(one.media_type for one in TYPES if one.picture)
DEFAULT_ENDINGS: Final = frozenset(ending for one in TYPES if one.default for ending in one.endings)


class NotAccepted(ValueError):
    """The wiki does not take this file; ``str()`` is a sentence for the person who sent it."""


_ZIPPED: Final = frozenset(
    one.media_type for one in TYPES if one.endings[0] in ("docx", "xlsx", "pptx", "odt", "ods", "odp", "odg", "epub")
)

# --- from the content ------------------------------------------------------------------------------

_ZIP_NAMES: Final = (
    (b"word/", "docx"),
    (b"xl/", "xlsx"),
    (b"ppt/", "pptx"),
)
_BRANDS: Final = {
    **dict.fromkeys((b"avif", b"avis"), "avif"),
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"), "heic"),
    b"qt  ": "mov",
    **dict.fromkeys((b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"dash"), "mp4"),
    **dict.fromkeys((b"M4A ", b"M4V ", b"M4VP", b"mp71", b"3gp4", b"3gp5", b"f4v "), "mp4"),
}


def _is_png(head: bytes) -> bool:
    return head[8:16] == b"\x00\x00\x00\x0dIHDR" and head[16:20] != bytes(4) and head[20:24] != bytes(4)


def _is_gif(head: bytes) -> bool:
    """Return whether a GIF's header is followed by a size and by a table or block, not by a comment of a script."""
    if len(head) < 14 or head[4:6] not in (b"7a", b"9a") or head[6:8] == b"\x00\x00" or head[8:10] == b"\x00\x00":
        return False
    colours = 3 * 2 ** ((head[10] & 7) + 1) if head[10] & 0x80 else 0
    first = head[13 + colours : 14 + colours]
    return first in (b"!", b",", b"")


def _is_jpeg(head: bytes) -> bool:
    return head[3:4] != b"" and 0xC0 <= head[3] <= 0xFE and (head[3] >= 0xDB or head[3] in (0xC0, 0xC1, 0xC2, 0xC4))


def _is_bmp(head: bytes) -> bool:
    return head[6:10] == bytes(4) and head[14:18] in (b"\x28\0\0\0", b"\x6c\0\0\0", b"\x7c\0\0\0", b"\x0c\0\0\0")


def _is_icon(head: bytes) -> bool:
    return 0 < int.from_bytes(head[4:6], "little") <= 256 and head[9:10] == b"\0"


def _is_mp3(head: bytes) -> bool:
    return len(head) > 3 and head[1] & 0xE6 == 0xE2 and head[2] >> 4 not in (0, 15) and head[2] & 0x0C != 0x0C


def _riff(form: bytes) -> Callable[[bytes], bool]:
    return lambda head: head[8:12] == form


def _any(_head: bytes) -> bool:
    return True


# Signature, further condition, ending of the type.
_SIGNATURES: Final[tuple[tuple[bytes, Callable[[bytes], bool], str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", _is_png, "png"),
    (b"\xff\xd8\xff", _is_jpeg, "jpg"),
    (b"GIF8", _is_gif, "gif"),
    (b"RIFF", _riff(b"WEBP"), "webp"),
    (b"RIFF", _riff(b"WAVE"), "wav"),
    (b"II*\0", _any, "tif"),
    (b"MM\0*", _any, "tif"),
    (b"BM", _is_bmp, "bmp"),
    (b"\0\0\1\0", _is_icon, "ico"),
    (b"%PDF-", _any, "pdf"),
    (b"{\\rtf", _any, "rtf"),
    (b"\x1f\x8b\x08", _any, "gz"),
    (b"BZh", lambda head: head[3:10][1:] == b"1AY&SY", "bz2"),
    (b"\xfd7zXZ\0", _any, "xz"),
    (b"\x28\xb5\x2f\xfd", _any, "zst"),
    (b"7z\xbc\xaf\x27\x1c", _any, "7z"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _any, "doc"),
    (b"ID3", lambda head: head[3:4] in (b"\2", b"\3", b"\4"), "mp3"),
    (b"OggS\0", _any, "ogg"),
    (b"fLaC\0", _any, "flac"),
    (b"\x1a\x45\xdf\xa3", _any, "webm"),
    (b"\xff", _is_mp3, "mp3"),
)


def recognised(head: bytes) -> FileType | None:
    """Return the type of a file from its first SNIFFED_BYTES, or None for an unknown one.

    Every kind of text that is no markup is "text/plain": the name chooses (``type_of``).
    """
    head = head[:SNIFFED_BYTES]
    for signature, holds_true, ending in _SIGNATURES:
        if head.startswith(signature) and holds_true(head):
            return BY_ENDING[ending]
    if head[4:8] == b"ftyp":
        return BY_ENDING.get(_BRANDS.get(head[8:12], ""))
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return _archive(head)
    text = text_of(head)
    return None if text is None else _markup(text[0]) or BY_ENDING["txt"]


def _archive(head: bytes) -> FileType:
    """Return the type of a ZIP file by the local headers of its first files."""
    names: list[bytes] = []
    position = 0
    while head[position : position + 4] == b"PK\3\4" and len(head) >= position + 30:
        size, length = (
            int.from_bytes(head[position + 18 : position + 22], "little"),
            head[position + 26 : position + 30],
        )
        name_end = position + 30 + int.from_bytes(length[:2], "little")
        begin = name_end + int.from_bytes(length[2:], "little")
        name = head[position + 30 : name_end]
        if not names and name == b"mimetype" and head[position + 8 : position + 10] == bytes(2):
            stated = BY_MEDIA_TYPE.get(head[begin : begin + size].decode("ascii", "replace"))
            return stated if stated is not None and stated.endings[0][:2] in ("od", "ep") else BY_ENDING["zip"]
        names.append(name)
        if size == 0 and head[position + 6] & 8:  # the size follows the content, so the next header is searched
            begin = max(begin, head.find(b"PK\3\4", begin))
        position = begin + size if begin + size > position else len(head)
    if any(name in (b"[Content_Types].xml", b"_rels/.rels") for name in names):
        for folder, ending in _ZIP_NAMES:
            if any(name.startswith(folder) for name in names):
                return BY_ENDING[ending]
    return BY_ENDING["zip"]


# --- text ------------------------------------------------------------------------------------------

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")  # all but blanks, form feed and escape
_BEFORE_MARKUP: Final = re.compile(r"\s++|<\?.*?\?>|<!--.*?(?:-->|\Z)", re.DOTALL)
_SVG: Final = re.compile(r"<!DOCTYPE\s+svg[\s>\[]|<(?:[\w.\-]+:)?svg[\s>/]", re.IGNORECASE)
# Elements by which browsers recognise HTML (WHATWG, MIME sniffing), and those that run something in a fragment.
_HTML: Final = re.compile(
    r"<(?:!DOCTYPE\s+html|html|head|body|script|iframe|h[1-6]|div|font|table|a|style|title|b|br|p|img|link|meta|base"
    r"|form|frameset|object|embed|video|audio|svg|math|template|center)[\s>/]",
    re.IGNORECASE,
)


def text_of(head: bytes) -> tuple[str, str] | None:
    """Return the text at a file's beginning and its character set, or None if it is no text.

    Without a mark only UTF-8 is text: a browser that guessed at any other could find script in it.
    """
    is_cut = len(head) >= SNIFFED_BYTES  # perhaps within a character
    for mark, charset in (*_MARKS, (b"", "utf-8")):
        if head.startswith(mark):
            try:
                text = codecs.getincrementaldecoder(charset)().decode(head[len(mark) :], final=not is_cut)
            except UnicodeDecodeError:
                return None
            return None if _CONTROL.search(text) else (text, charset.removesuffix("-le").removesuffix("-be"))
    return None


def _markup(text: str) -> FileType | None:
    position = 0
    while before := _BEFORE_MARKUP.match(text, position):
        position = before.end()
    if _SVG.match(text, position) or (text.startswith("<?xml") and _SVG.search(text, position, position + 4_000)):
        return BY_ENDING["svg"]
    if _HTML.match(text, position):
        return BY_ENDING["html"]
    return BY_ENDING["xml"] if text.lstrip().startswith("<?xml") else None


# --- with the name ---------------------------------------------------------------------------------


def type_of(head: bytes, name: str) -> FileType:
    """Return the type of a file by its content; among kinds of text the name chooses.  Raises NotAccepted."""
    found = recognised(head)
    if found is None:
        raise NotAccepted(_("The wiki does not know this kind of file. Put it into a ZIP archive, or convert it."))
    named = BY_ENDING.get(ending_of(name))
    if not found.text or named is None or not named.text:
        return found
    # A note that begins with a tag keeps its name, but no browser shows it by itself.
    return named if found.media_type == "text/plain" or not named.inline else found


def fitting_name(name: str, found: FileType) -> str:
    """Return ``name`` with an ending that agrees with the content.  Raises NotAccepted, InvalidFileName.

    An unknown ending gets the right one behind it: a batch file becomes "run.bat.txt".
    """
    ending = ending_of(name)
    named, right = BY_ENDING.get(ending), found.endings[0]
    if named is None:
        return with_ending(name, right, replace=False)
    if named == found or (found.text and named.text) or (right == "zip" and named.media_type in _ZIPPED):
        return name
    if found.picture and named.picture and found.inline and named.inline:
        return with_ending(name, right, replace=True)
    said = _(
        "Its name ends with .{ending}, but its content is {type}. Give it the ending .{right}, if that is right.",
        ending=ending,
        type=found.media_type,
        right=right,
    )
    raise NotAccepted(said)


def check_accepted(name: str, found: FileType, accepted: Collection[str]) -> None:
    """Raise NotAccepted unless the site takes files of this type; ``accepted`` has endings, or ALL."""
    if ALL not in accepted and not any(ending in accepted for ending in found.endings):
        if found.media_type == HEIC:
            raise NotAccepted(_(_NO_HEIC))
        raise NotAccepted(
            _("This wiki takes no files of the type .{ending}.", ending=ending_of(name) or found.endings[0])
        )
