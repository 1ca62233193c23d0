"""A wiki for exports, drawn from a seed: awkward names, both formats, languages, hidden and minor revisions, rights,
files with versions, comments, a page that was renamed, one with files that redirects, and deleted ones."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from wikka_port.comments.comment_rows import REMOVED
from wikka_port.comments.stored_comments import NewComment, StoredComments
from wikka_port.files.stored_files import StoredFiles
from wikka_port.import_plan import Origin
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege

NAMES = (
    *("HomePage", "homepage", "A/B", "A", "a/b/C", "CON", "nul.txt", "Trailing.", "Über ß", "日本語", "עברית"),
    *('Quote " and <tag>', "Star * ? | : \\", "..", ".", "~2F", "%41", "Con/Aux/x", "ﬁ ligature", "e\u0301/é"),
    *("Category:Ports", "Template/new", "files", "files/Page", "-n", "wikka-pages.jsonl", "x" * 250, "#hash", "it's"),
)
TEXTS = (
    "",
    "\n",
    "no end of line",
    "two lines\n\nand a blank one\n",
    "carriage\r\nreturns\r",
    "**bold** [[A/B link]] HomePage\n\n~- item\n",
    "# Title\n\n- [A](A)\n",
    "  leading blanks\n\ttab\x0bvertical \u2028 separator \x1f unit\n",
    'data 5\nfrom :1\n"""quotes""" ]]> <!-- -- --> &amp; {{{1}}}\n',
    "emoji 🚢 \U0001f3f4\U000e0067 \ufeff mark\n",
)
PEOPLE = ("Ada", "Visitor 7f3a", "Łukasz <l@example.org>", "a\nnewline", "", "WikiAdmin", "x <y> z", "\u202eright")
NOTES = ("", "fixed", "two\nlines", 'with "quotes" & <tags>', "Wikka-Name: not a trailer", "ends with blank ")
START_MS = 1_700_000_000_000


def fill(wiki: Wiki, seed: int, names: Sequence[str] = NAMES, at: str = "") -> None:
    """Write the wiki, one save after another; names begin with ``at``, and times of the pages are mixed."""
    draw = Random(seed)
    wiki.rights.change_rules("", {Privilege.WRITE: "+", Privilege.READ: "*"}, wiki.rights.rules())
    wiki.rights.change_rules("private/", {Privilege.READ: "+"}, wiki.rights.rules())
    for name in names:
        times = sorted(draw.sample(range(START_MS, START_MS + 10**9), draw.choice((1, 2, 5))))
        fill_page(wiki, at + name, draw, times)
    moved, spam = f"{at}Moved ship", f"{at}Gone/Spam"
    wiki.mover.rename(f"{at}A", moved, By("Ada", "account", "a better name"))
    number = wiki.head(moved).number
    wiki.save(moved, "after the move", author="Ada", signed="account", base=number)
    for name, reason in ((moved, "twice"), (spam, 'it was "spam"\n<b>'), (spam, ""), (spam.lower(), "")):
        if name != moved:
            fill_page(wiki, name, draw, sorted(draw.sample(range(START_MS, START_MS + 10**9), 3)))
        wiki.mover.delete(name, By("Ada", "account", reason))
    fill_page(wiki, spam, draw, [START_MS + 5])
    old = f"{at}Old pier"
    wiki.save(old, "a pier", author="Ada", base=0)
    add_file(wiki.files, old, "pier.txt", b"a pier", By("Ada"))
    wiki.save(old, f"#REDIRECT [[{at}HomePage]]", author="Ada", base=1)


def fill_page(wiki: Wiki, name: str, draw: Random, times: list[int]) -> None:
    markup, language = draw.choice(("wikka", "markdown")), draw.choice(("", "", "de", "he"))
    for number, at in enumerate(times):
        body = draw.choice(TEXTS) + draw.choice((f"{draw.random()}", ""))
        imported = draw.random() < 0.3
        wiki.save(
            name,
            body,
            base=wiki.head(name).number if number else 0,  # a name of a deleted page is numbered on
            time_ms=at,
            author=draw.choice(PEOPLE),
            note=draw.choice(NOTES),
            signed=draw.choice(("", "account", "visitor", "wiki")),
            minor=draw.random() < 0.3,
            markup=markup if draw.random() < 0.8 else "markdown",
            language=language or None,
            autolink=draw.random() < 0.5,
            attribution=draw.choice(("", "From elsewhere")),
            owner=draw.choice(("Ada", "(Public)", "")),
            source=f"'''{body}'''" if imported else None,
            origin=Origin(at, draw.choice((0, 4711)), "ab" * 20).pack() if imported else b"",
        )
    newest = wiki.head(name).number
    for number in range(newest - len(times) + 1, newest):
        if draw.random() < 0.3:
            wiki.mover.hide(name, number, hidden=True)
    if draw.random() < 0.4:
        lists = {Privilege.READ: draw.choice(("*", "+", "Ada\n!*")), Privilege.COMMENT_POST: "!Bob"}
        page = wiki.page(name)
        assert page is not None
        wiki.rights.change(name, page.rights, draw.choice(("Ada", "Bob")), lists)
    if draw.random() < 0.5:
        fill_files(wiki.files, name, draw)
    if draw.random() < 0.6:
        fill_comments(wiki.comments, name, draw)


def fill_comments(comments: StoredComments, page: str, draw: Random) -> None:
    """Add comments with answers; some are edited, some removed."""
    for number in range(1, draw.choice((2, 4, 8))):
        new = NewComment(
            text=draw.choice(TEXTS[2:]) + str(number),
            author=draw.choice(PEOPLE),
            signed=draw.choice(("account", "visitor", "key", "")),
            form=f"form {number}",
            markup=draw.choice(("", "wikka", "markdown", "plain")),
            parent=draw.randrange(number),
            time_ms=START_MS + draw.randrange(10**9),
            browser="a browser",
        )
        comments.add(page, b"", new, allow=anybody)
        if draw.random() < 0.2:
            edited = draw.randrange(START_MS, START_MS + 2 * 10**9)
            comments.change(
                page, b"", number, lambda one, at=edited: replace(one, text="new", edited_ms=at), allow=anybody
            )
        if draw.random() < 0.2:
            comments.change(
                page, b"", number, lambda one: replace(one, state=REMOVED, removed_by="owner"), allow=anybody
            )


def fill_files(files: StoredFiles, page: str, draw: Random) -> None:
    """Add files with one to three versions; some are removed, some described anew."""
    by = By("Ada", "account", draw.choice(NOTES))
    for name, content in (
        ("notes.txt", b"some text\n" * draw.randrange(1, 200)),
        ("Ä ship (1).png", png_of(draw.randrange(1, 9), 3)),
        ("empty.txt", b""),
    )[: draw.randrange(1, 4)]:
        token = add_file(files, page, name, content, by)
        if draw.random() < 0.4:
            token = files.describe(page, name, token, by, alt="a ship: at sea", allow=anybody).token
        if draw.random() < 0.4:
            files.remove(page, name, token, by, allow=anybody)
            add_file(files, page, name, content, by)


def add_file(files: StoredFiles, page: str, name: str, content: bytes, by: By, replaces: str = "") -> str:
    upload = files.begin(page, name, "test", len(content), allow=anybody)
    writer = files.writer(upload)
    writer.write_piece(content)
    whole = files.settle(writer.finish_part())
    return files.commit(whole, by, replaces=replaces, allow=anybody).token


def anybody(_name: str, _rights: object) -> None:
    """Allow everything."""


def png_of(width: int, height: int) -> bytes:
    """Return a picture with a text in it, which is metadata that an upload removes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80" * (3 * width) for _ in range(height))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"tEXt", b"Author\0Ada"),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in parts)
