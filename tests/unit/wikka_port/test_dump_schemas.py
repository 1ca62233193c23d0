"""MediaWiki's export schemas, 0.1 to 0.11, element by element: what is optional there may be missing."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import tarfile
from typing import Any

import pytest

from wikka_port.dump import DamagedDump, DumpEvent, DumpReader, DumpSite, NotADump, PageStart, Revision, model_of_title
from wikka_port.import_pages import Counts, PartReader
from wikka_port.import_plan import PagePart
from wikka_port.markup.mediawiki_titles import files_address, page_address

NAMES = ((-2, "Media"), (-1, "Special"), (0, ""), (1, "Diskussion"), (6, "Datei"), (10, "Vorlage"), (14, "Kategorie"))
NAMESPACES = "".join(f'<namespace key="{key}" case="first-letter">{name}</namespace>' for key, name in NAMES)
SITE = f"<siteinfo><sitename>S</sitename><base>http://s/wiki/X</base><namespaces>{NAMESPACES}</namespaces></siteinfo>"
TIME = "<timestamp>2020-01-01T00:00:00Z</timestamp>"


def made(*elements: str, version: str = "0.10") -> bytes:
    return f'<mediawiki version="{version}" xml:lang="de">{"".join(elements)}</mediawiki>'.encode()


def page(title: str, revisions: str, head: str = "") -> str:
    return f"<page><title>{title}</title>{head}{revisions}</page>"


def revision(text: str = "<text>words</text>", head: str = TIME) -> str:
    return f"<revision>{head}{text}</revision>"


def events(data: bytes) -> list[DumpEvent]:
    return list(DumpReader(io.BytesIO(data)))


def one(data: bytes) -> Revision:
    return next(event for event in events(data) if isinstance(event, Revision))


def parts(data: bytes, **options: Any) -> tuple[list[PagePart], Counts]:
    reader = PartReader(DumpReader(io.BytesIO(data)), **options)
    return list(reader), reader.counts


@pytest.mark.parametrize(
    ("title", "namespace"),
    [
        ("Kategorie:Obst", 14),
        ("kategorie:Obst", 14),
        ("Category:Obst", 14),
        ("Datei:A.png", 6),
        ("Image:A.png", 6),
        ("Diskussion:A: B", 1),
        ("Unbekannt:A", 0),
        ("Kategorie:", 0),
        ("A", 0),
        (":A", 0),
    ],
)
def test_the_namespace_follows_from_the_title_where_the_dump_does_not_say_it(title: str, namespace: int) -> None:
    found = [event for event in events(made(SITE, page(title, revision()))) if isinstance(event, PageStart)]
    assert [(one.title, one.namespace, one.page_id) for one in found] == [(title, namespace, None)]
    said = made(SITE, page(title, revision(), "<ns>4</ns><id>7</id>"))
    found = [event for event in events(said) if isinstance(event, PageStart)]
    assert [(one.namespace, one.page_id) for one in found] == [(4, 7)]


def test_a_category_of_an_old_dump_lists_its_members_and_can_be_chosen() -> None:
    data = made(SITE, page("Kategorie:Obst", revision()), page("Apfel", revision()), version="0.3")
    found, _ = parts(data)
    assert [("{{category}}" in part.revisions[0].body) for part in found] == [True, False]
    chosen, counts = parts(data, namespaces=["14"])
    assert ([part.name for part in chosen], counts.passed_over) == (["Kategorie:Obst"], 1)


def test_a_dump_without_a_site_still_says_its_language() -> None:
    found = events(made(page("Category:A", revision())))
    assert isinstance(found[0], DumpSite)
    assert (found[0].language, found[0].name) == ("de", "")
    assert isinstance(found[1], PageStart)
    assert found[1].namespace == 14


def test_further_names_and_cases_of_namespaces() -> None:
    aliases = '<namespacealiases><namespacealias key="14">Kat</namespacealias></namespacealiases>'
    names = '<namespace key="0" case="case-sensitive"/><namespace key="2" case="first-letter">Benutzer</namespace>'
    site = f"<siteinfo><case>case-sensitive</case><namespaces>{names}</namespaces>{aliases}</siteinfo>"
    text = "[[Kat:obst]] [[apfel]] [[benutzer:ann]]"
    found, _ = parts(made(site, page("Kat:Obst", revision()), page("a", revision(f"<text>{text}</text>"))))
    assert "{{category}}" in found[0].revisions[0].body
    body = found[1].revisions[0].body
    assert "[[apfel]]" in body
    assert "[[Benutzer:Ann | benutzer:ann]]" in body
    assert "obst" in body.partition("----")[2]


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("2020-01-01T00:00:00Z", 0),
        ("2020-01-01T00:00:00.123Z", 123),
        ("2020-01-01T00:00:00.123456Z", 123),
        ("2020-01-01T00:00:00", 0),
        ("2020-01-01T01:00:00+01:00", 0),
        (" 2020-01-01T00:00:00.5Z ", 500),
    ],
)
def test_times_as_xml_schema_writes_them(written: str, ms: int) -> None:
    data = made(page("A", revision(head=f"<timestamp>{written}</timestamp>")))
    assert one(data).timestamp_ms == 1_577_836_800_000 + ms


@pytest.mark.parametrize("written", ["", "yesterday", "2020-13-01T00:00:00Z"])
def test_what_is_no_time_is_damage(written: str) -> None:
    with pytest.raises(DamagedDump):
        events(made(page("A", revision(head=f"<timestamp>{written}</timestamp>"))))


def test_ids_may_be_missing_and_may_not_be_nonsense() -> None:
    found = one(made(page("A", revision())))
    assert (found.revision_id, found.contributor, found.comment, found.minor) == (None, None, "", False)
    with pytest.raises(DamagedDump, match="id of a revision"):
        events(made(page("A", revision(head=f"<id>x</id>{TIME}"))))


@pytest.mark.parametrize(
    ("title", "namespace", "model"),
    [
        ("MediaWiki:Common.css", 8, "css"),
        ("MediaWiki:Common.js", 8, "javascript"),
        ("MediaWiki:Sidebar", 8, "wikitext"),
        ("Benutzer:A/vector.css", 2, "css"),
        ("Benutzer:A.css", 2, "wikitext"),
        ("Module:A", 828, "Scribunto"),
        ("Module:A/doc", 828, "wikitext"),
        ("Vorlage:A/styles.css", 10, "sanitized-css"),
        ("A.css", 0, "wikitext"),
    ],
)
def test_the_model_follows_from_the_title_before_schema_0_8(title: str, namespace: int, model: str) -> None:
    assert model_of_title(title, namespace) == model
    head = f"<ns>{namespace}</ns>"
    assert one(made(page(title, revision(), head))).model == model
    assert one(made(page(title, revision(head=f"{TIME}<model>text</model>"), head))).model == "text"


@pytest.mark.parametrize("text", ['<text id="12" bytes="5" />', '<text id="12"/>', '<text bytes="5" location="tt:1"/>'])
def test_a_stub_is_refused_by_name(text: str) -> None:
    with pytest.raises(NotADump, match=r"stub.*'First'.*pages-meta-history"):
        events(made(SITE, page("First", revision(text))))


@pytest.mark.parametrize("text", ["<text/>", '<text id="12" bytes="0"/>', '<text xml:space="preserve"></text>'])
def test_an_empty_text_is_no_stub(text: str) -> None:
    assert one(made(page("A", revision(text)))).text == ""


def test_logs_have_no_pages() -> None:
    item = f"<logitem><id>1</id>{TIME}<contributor><username>U</username></contributor><type>move</type></logitem>"
    with pytest.raises(NotADump, match="dump of logs"):
        events(made(SITE, item))
    assert [type(event) for event in events(made(SITE, page("A", revision()), item))][1:2] == [PageStart]


def test_uploads_threads_and_logs_within_a_page_are_passed_over() -> None:
    upload = (
        f"<upload>{TIME}<contributor><username>Other</username></contributor><comment>c</comment><filename>F</filename>"
        "<src>http://s/f</src><size>9</size><contents encoding='base64'>QUJD</contents></upload>"
    )
    thread = "<discussionthreadinginfo><ThreadSubject>s</ThreadSubject><ThreadID>4</ThreadID></discussionthreadinginfo>"
    log = f"<logitem><id>1</id>{TIME}<text>no text of a page</text></logitem>"
    mine = revision(head=f"{TIME}<contributor><username>Me</username></contributor>")
    found = events(
        made(SITE, page("A", upload + mine + upload + log + thread, "<restrictions>edit=sysop</restrictions>"))
    )
    revisions = [event for event in found if isinstance(event, Revision)]
    assert [(one.contributor, one.text) for one in revisions] == [("Me", "words")]


def test_texts_of_further_slots_are_counted_and_their_checksum_is_not_that_of_the_text() -> None:
    slot = "<content><role>mediainfo</role><origin>1</origin><model>json</model><text bytes='2'>{}</text></content>"
    data = made(page("A", revision(f"<text bytes='5'>words</text>{slot}<sha1>abc</sha1>")))
    found = one(data)
    assert (found.text, found.slots, found.sha1) == ("words", 1, None)
    _, counts = parts(data)
    assert (counts.unconverted["text of a further slot"], counts.mismatches) == (1, 0)


def base_36(number: int) -> str:
    return base_36(number // 36) + "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36] if number else ""


@pytest.mark.parametrize(
    ("size", "sha1", "said"),
    [
        (5, None, ""),
        (None, None, ""),
        (6, None, "5 bytes instead of 6"),
        (5, "0a", "another SHA-1"),
        (7, "0a", "5 bytes instead of 7 and another SHA-1"),
    ],
)
def test_sizes_and_checksums_are_compared_and_named(size: int | None, sha1: str | None, said: str) -> None:
    right = base_36(int.from_bytes(hashlib.sha1(b"words").digest(), "big")).zfill(31)
    said_size = f" bytes='{size}'" if size is not None else ""
    text = f"<text{said_size}>words</text><sha1>{sha1 or right}</sha1>"
    found, counts = parts(made(page("A", revision(text, f"<id>9</id>{TIME}"))))
    assert found[0].revisions[0].body == "words", "it is taken as it is"
    assert counts.mismatches == bool(said)
    assert all(said in line and "A: revision 9 of 2020-01-01 00:00:00" in line for line in counts.mismatched)


def test_a_redirect_of_which_the_dump_says_no_target_is_one_in_any_language() -> None:
    text = "<text>#IRGENDWIE [[Ziel]]</text>"
    found, counts = parts(made(page("A", revision(text), "<redirect />"), page("B", revision(text))))
    assert [part.revisions[0].is_redirect for part in found] == [True, False]
    assert counts.redirects == 1


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("http://s/wiki/Main_Page", "http://s/wiki/A"),
        ("http://s/wiki/Portal/Main", "http://s/wiki/A"),
        ("http://s/index.php?title=Main_Page", "http://s/index.php?title=A"),
        ("http://s/w/index.php?lang=de&title=Main_Page&x=1", "http://s/w/index.php?lang=de&title=A&x=1"),
        ("http://s/w/?title=Main_Page", "http://s/w/?title=A"),
        ("http://s/w/index.php/Main_Page", "http://s/w/index.php/A"),
        ("http://s/Main_Page", "http://s/A"),
        ("http://s/", "http://s/A"),
        ("http://s", "http://s/A"),
        ("//s/wiki/Main_Page", "//s/wiki/A"),
        ("http://[x/wiki/Main_Page", "/A"),
        ("", ""),
    ],
)
def test_the_address_of_a_page_at_its_site(base: str, address: str) -> None:
    assert page_address(base, "A") == address


def test_a_site_without_short_addresses_gets_its_attribution_and_pictures_right() -> None:
    site = "<siteinfo><sitename>S</sitename><base>http://s/index.php?title=Main_Page</base></siteinfo>"
    found, _ = parts(made(site, page("A &amp; B", revision("<text>[[File:C d.png]]</text>"))))
    made_of = found[0].revisions[0]
    assert found[0].attribution.startswith("From S, http://s/index.php?title=A_%26_B, by")
    assert "http://s/index.php?title=Special:FilePath/C_d.png" in made_of.body


def test_pictures_are_behind_the_title_whatever_follows_it() -> None:
    assert files_address("http://s/i.php?title=Main_Page&uselang=de") == "http://s/i.php?title=Special:FilePath/"
    assert files_address("https://s/wiki/Main_Page") == "https://s/wiki/Special:FilePath/"
    assert files_address("") == ""


def test_minor_edits_come_in_as_such() -> None:
    found, _ = parts(made(page("A", revision(head=f"{TIME}<minor/>") + revision())))
    assert [one.minor for one in found[0].revisions] == [True, False]


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"PK\x03\x04", "a zip archive"),
        (b"Rar!\x1a\x07\x01\x00", "a rar archive"),
        (b"\xfd7zXZ\x00", "an xz file"),
        (b"LZIP\x01", "an lzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"\x04\x22\x4d\x18", "an lz4 file"),
    ],
)
def test_archives_are_refused_by_name_with_what_unpacks_them(begin: bytes, kind: str) -> None:
    with pytest.raises(NotADump, match=rf"{kind}.*wikka import -"):
        events(begin + b"\0" * 40)


def test_an_archive_of_files_is_refused_by_name_packed_or_not() -> None:
    made_of = io.BytesIO()
    with tarfile.open(fileobj=made_of, mode="w") as archive:
        data = made(page("A", revision()))
        entry = tarfile.TarInfo("dump.xml")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    for packed in (made_of.getvalue(), gzip.compress(made_of.getvalue()), bz2.compress(made_of.getvalue())):
        with pytest.raises(NotADump, match=r"a tar archive.*wikka import -"):
            events(packed)
