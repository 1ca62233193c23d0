"""An export as MediaWiki's XML: its bytes as they were kept, its schema, the exact way back, what MediaWiki reads."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import BinaryIO
from xml.parsers import expat

import pytest

from tests.support.drawn_records import drawn_source
from tests.support.golden import hold_to
from tests.support.recorded_pages import FIXED, WITH_DELETED, digests_of
from tests.support.seeds import seed
from wikka_port.dump import DumpReader, PageStart, Revision
from wikka_port.exchange.export_file import piped
from wikka_port.exchange.mediawiki_reader import MediaWikiExport
from wikka_port.exchange.mediawiki_xml import write_mediawiki
from wikka_port.exchange.records import ExportError, RecordSource

SEED = seed(405)
# Children of each element in their order, as export-0.11.xsd has them; "?" and "*" after a name as in a DTD.
SCHEMA = {
    "mediawiki": "siteinfo? page* logitem*",
    "siteinfo": "sitename? dbname? base? generator? case? namespaces? namespacealiases",
    "namespaces": "namespace*",
    "page": "title ns id redirect? restrictions? revision*",
    "revision": "id parentid? timestamp contributor minor? comment? model format text sha1",
    "contributor": "username? id? ip?",
}


def written(source: RecordSource) -> bytes:
    out = io.BytesIO()
    with piped(out.write) as to:
        write_mediawiki(source, to)
    return out.getvalue()


def opened(data: bytes) -> MediaWikiExport:
    def opener() -> BinaryIO:
        return io.BytesIO(data)

    return MediaWikiExport(opener)


def test_the_xml_is_as_it_was_kept() -> None:
    lines = written(FIXED).decode().split("\n")
    hold_to("wiki-export-mediawiki.txt", {f"{number}": line for number, line in enumerate(lines, 1)})


def test_what_is_read_is_what_was_written() -> None:
    print("seed", SEED)
    for source in (FIXED, WITH_DELETED, drawn_source(SEED)):
        export = opened(written(source))
        assert export.site() == source.site()
        assert digests_of(export).as_lines() == digests_of(source).as_lines()


def test_elements_come_in_the_order_of_the_schema_and_ids_are_unique() -> None:
    children: list[list[str]] = []
    paths: list[str] = []
    wrong: list[str] = []
    ids: dict[str, list[str]] = {"page": [], "revision": []}

    def start(name: str, _attributes: dict[str, str]) -> None:
        if children:
            children[-1].append(name)
        children.append([])
        paths.append(name)

    def end(name: str) -> None:
        found, pattern = " ".join([*children.pop(), ""]), SCHEMA.get(name, "")
        allowed = "".join(f"(?:{one.rstrip('?*')} ){one[-1] if one[-1] in '?*' else ''}" for one in pattern.split())
        if not re.fullmatch(allowed, found):
            wrong.append(f"{name}: {found}")
        paths.pop()

    def data(text: str) -> None:
        if paths[-1] == "id" and paths[-2] in ids:
            ids[paths[-2]].append(text)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, data
    parser.Parse(written(drawn_source(SEED)), True)
    assert wrong == []
    for of_kind in ids.values():
        assert of_kind == [str(number) for number in range(1, len(of_kind) + 1)]


def test_another_reader_of_such_dumps_sees_original_and_converted_texts() -> None:
    events = list(DumpReader(io.BytesIO(written(WITH_DELETED))))
    assert [event.title for event in events if isinstance(event, PageStart)] == ["Harbour/Pier", "日本"]
    texts = [(event.text, event.contributor, event.comment) for event in events if isinstance(event, Revision)]
    assert texts == [
        ("'''One'''\n", "Ada", ""),
        (None, "Eve", "two lines"),
        ("= Zwei =\n", "Ada", "“quoted”"),
        ("== 日本 ==\n", "(hidden)", ""),
    ]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "without its end": (lambda data: data[: data.index(b"<?wikka-end")], "the export was cut off"),
    "cut off in a page": (lambda data: data[: data.index(b"</page>")], "the export was cut off"),
    "another version": (lambda data: data.replace(b'"version":1', b'"version":3', 1), "this program reads 1"),
    "no JSON": (lambda data: data.replace(b'<?wikka-page {"', b"<?wikka-page {{", 1), "is no JSON"),
    "a bomb": (lambda data: b"<!DOCTYPE x [<!ENTITY a 'b'>]>" + data, "document type declaration"),
    "no export": (lambda data: data.replace(b"<?wikka-export", b"<?other-export", 1), "no export of this program"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named(name: str) -> None:
    change, said = DAMAGES[name]
    damaged = change(written(FIXED))
    with pytest.raises(ExportError, match=re.escape(said)):
        digests_of(opened(damaged))
