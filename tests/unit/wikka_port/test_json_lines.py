"""The bytes of an export in JSON lines, as they were kept; and reading them in parts."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import BinaryIO

import pytest

from tests.support.drawn_records import drawn_source
from tests.support.golden import FOLDER, hold_to
from tests.support.recorded_pages import AGAIN, FIXED, SPAM, WITH_DELETED, digests_of
from tests.support.seeds import seed
from wikka_port.exchange.export_file import piped
from wikka_port.exchange.json_lines import JsonLines, write_lines
from wikka_port.exchange.records import ExportError, RecordSource

SEED = seed(402)


def written(source: RecordSource = FIXED) -> bytes:
    out = io.BytesIO()
    with piped(out.write) as to:
        write_lines(source, to)
    return out.getvalue()


def opened(data: bytes) -> JsonLines:
    def opener() -> BinaryIO:
        return io.BytesIO(data)

    return JsonLines(opener)


def test_the_lines_are_as_they_were_kept() -> None:
    lines = written().decode().splitlines()
    hold_to("wiki-export-json-lines.txt", {f"{number}": line for number, line in enumerate(lines, 1)})


def test_what_is_read_is_what_was_written() -> None:
    source = opened(written())
    assert source.site() == FIXED.site()
    assert digests_of(source).as_lines() == digests_of(FIXED).as_lines()
    kept = (FOLDER / "wiki-export-json-lines.txt").read_text().splitlines()
    old = "".join(line.partition("  ")[2] + "\n" for line in kept).encode()
    assert digests_of(opened(old)).as_lines() == digests_of(FIXED).as_lines()


def test_deleted_pages_say_when_by_whom_and_why() -> None:
    print("seed", SEED)
    found = [page.record for page in opened(written(WITH_DELETED)).pages()]
    assert found[2:] == [SPAM.record, AGAIN.record]
    for source in (WITH_DELETED, drawn_source(SEED)):
        assert digests_of(opened(written(source))).as_lines() == digests_of(source).as_lines()
    line = b'"deleted_ms":1700000000100,"deleted_by":"Ada"'
    for other in (b'"deleted_by":"Ada"', b'"deleted_ms":9999999999999999,"deleted_by":"Ada"'):
        with pytest.raises(ExportError, match="the time of the deletion is missing or too late"):
            digests_of(opened(written(WITH_DELETED).replace(line, other)))


def test_pages_whose_parts_are_passed_over_are_all_found() -> None:
    assert [page.record for page in opened(written()).pages()] == [page.record for page in FIXED.pages()]
    contents = [[file.record for file in page.files()] for page in opened(written()).pages()]
    assert contents == [[record for record, _ in page.of_files] for page in FIXED.of_wiki]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut off at a line": (lambda data: data[: data.rindex(b'{"kind":"end"')], "the export was cut off"),
    "cut off within a line": (lambda data: data[: len(data) // 2], "the export was cut off"),
    "a page less": (lambda data: data.replace(b'"pages":2', b'"pages":3'), "counts other pages"),
    "another version": (lambda data: data.replace(b'"version":1', b'"version":2', 1), "this program reads 1"),
    "an unknown field": (lambda data: data.replace(b'"number":', b'"numero":1,"number":', 1), "no field 'numero'"),
    "a wrong type": (lambda data: data.replace(b'"number":3', b'"number":"3"', 1), "a value of another type"),
    "no JSON": (lambda data: data.replace(b'{"kind":"revision"', b'{"kind":"revision",,', 1), "is no JSON"),
    "a bad name": (lambda data: data.replace(b'"Harbour/Pier"', b'" Harbour_Pier"', 1), "not the form"),
    "a bad time": (lambda data: data.replace(b"1700000001000", b"1700000000123"), "is not later"),
    "the newest is hidden": (lambda data: data.replace(b'"language":"de"', b'"hidden":true'), "missing or hidden"),
    "no base64": (lambda data: data.replace(b"YSBwaWVy", b"YSBw*aWVy"), "is no base64"),
    "other lists": (lambda data: data.replace(b'"read":"+"', b'"reed":"+"'), "lists of rights are not by"),
    "no form": (lambda data: data.replace(b'"markup":"markdown"', b'"markup":"troff"'), "no format 'troff'"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_with_its_line(name: str) -> None:
    change, said = DAMAGES[name]
    damaged = change(written())
    assert damaged != written()
    with pytest.raises(ExportError, match=re.escape(said)):
        digests_of(opened(damaged))
