"""COMPATIBILITY.md says of every field of both interfaces whether it is done, refused, or without effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from columnar.wire.idl import hbase
from columnar.wire.idl2 import hbase2
from columnar.wire.parsing import FILES
from tests.tidy.test_compatibility_page import ROOT

_NAME = re.compile(r"`(\w+)`")
_STRUCT = re.compile(r"^(?:struct|union|exception) (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*\d+:\s*(?:required |optional )?[\w.]+(?:<[^>]*>+)?\s+(\w+)", re.MULTILINE)
_METHOD = re.compile(r"^  [\w.]+(?:<[^>]*>+)? (\w+)\(([^)]*)\)", re.MULTILINE)
_ARGUMENT = re.compile(r"\d+:\s*[\w.]+(?:<[^>]*>+)?\s+(\w+)")


def fields_of(source: str) -> dict[str, set[str]]:
    """Struct or method -> its fields, as the interface file has them."""
    text = re.sub(r"//[^\n]*", "", (FILES / source).read_text())
    found = {name: set(_FIELD.findall(body)) for name, body in _STRUCT.findall(text)}
    return found | {name: set(_ARGUMENT.findall(args)) for name, args in _METHOD.findall(text)}


def rows_of(source: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """(structs or methods, the fields of each of the three columns) of the part that is headed by the file's name."""
    page = (ROOT / "COMPATIBILITY.md").read_text().partition("\n## Fields of the interface\n")[2]
    part = page.partition(f"`columnar/thrift/{source}`)\n")[2].partition("\n### ")[0]
    for line in part.splitlines():
        if line.startswith("| `"):
            names, *columns = line.strip("| ").split(" | ")[:4]
            yield _NAME.findall(names), [_NAME.findall(column) for column in columns]


@pytest.mark.parametrize(("source", "parsed"), [("hbase.thrift", hbase), ("hbase2.thrift", hbase2)])
def test_every_field_stands_once(source: str, parsed: Any) -> None:
    wanted = fields_of(source)
    structs = {name for name, one in vars(parsed).items() if hasattr(one, "thrift_spec")}
    assert structs <= wanted.keys(), "every struct of the parsed interface is found in its file"
    for name in structs:
        assert wanted[name] == {field[1] for field in getattr(parsed, name).thrift_spec.values()}
    said: dict[str, list[str]] = {}
    for names, columns in rows_of(source):
        for name in names:
            assert name not in said, f"{name} has two rows"
            said[name] = [field for column in columns for field in column]
    assert said.keys() == wanted.keys()
    for name, fields in said.items():
        assert sorted(fields) == sorted(wanted[name]), f"fields of {name}"


def test_what_has_no_effect_says_why() -> None:
    for source in ("hbase.thrift", "hbase2.thrift"):
        page = (ROOT / "COMPATIBILITY.md").read_text()
        part = page.partition(f"`columnar/thrift/{source}`)\n")[2].partition("\n### ")[0]
        for line in part.splitlines():
            if line.startswith("| `"):
                for column in line.strip("| ").split(" | ")[2:4]:
                    assert column == "-" or re.search(r"`: [a-z]", column), line
