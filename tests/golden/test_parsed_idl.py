"""The parsed interface definitions that a server loads are those of the .thrift files beside them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import thriftpy2

from columnar.wire import idl, idl2
from columnar.wire.parsing import FILES, PARSED, parsed


@pytest.mark.parametrize("name", sorted(PARSED))
def test_parsed_again_they_are_the_same(name: str) -> None:
    assert (FILES / name).read_text() == parsed(PARSED[name]), "an IDL changed: make idl"


def shape(value: Any) -> Any:
    """Of a spec: structs and enumerations by what they hold."""
    if isinstance(value, type):
        if hasattr(value, "thrift_spec"):
            return value.__name__, [(fid, shape(field)) for fid, field in sorted(value.thrift_spec.items())]
        return value.__name__, value._NAMES_TO_VALUES  # type: ignore[attr-defined]
    return tuple(shape(each) for each in value) if isinstance(value, tuple) else value


def by_thriftpy2(name: str) -> Any:
    return thriftpy2.load(str(Path(FILES) / name), module_name=f"compared_{name.removesuffix('.thrift')}_thrift")


@pytest.mark.parametrize(
    ("definition", "source"),
    [(idl.hbase, "hbase.thrift"), (idl.columnar, "columnar.thrift"), (idl2.hbase2, "hbase2.thrift")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_classes_have_the_specs_of_thriftpy2(definition: Any, source: str) -> None:
    meta = by_thriftpy2(source).__thrift_meta__
    assert meta["structs"]
    for of in (*meta["structs"], *meta["unions"], *meta["exceptions"], *meta["enums"]):
        made = getattr(definition, of.__name__)
        assert shape(made) == shape(of)
        if hasattr(of, "default_spec"):
            assert made.default_spec == of.default_spec
    for service in meta["services"]:
        made = getattr(definition, service.__name__)
        for name in service.thrift_services:
            for part in ("_args", "_result"):
                assert shape(getattr(made, name + part)) == shape(getattr(service, name + part))
                assert getattr(made, name + part).default_spec == getattr(service, name + part).default_spec
            assert getattr(made, name + "_result").oneway == getattr(service, name + "_result").oneway


def test_a_server_starts_without_a_parser() -> None:
    script = "import sys, columnar.roles.store_process, columnar.roles.standalone; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = {name.split(".")[0] for name in ast.literal_eval(done.stdout)}
    assert not loaded & {
        "thriftpy2",
        "ply",
        "httptools",
        "shutil",
        "happybase",
        "werkzeug",
        "jinja2",
        "waitress",
        "rich",
    }


def test_structs_compare_by_what_they_hold() -> None:
    assert idl.hbase.TCell(b"v", 5) == idl.hbase.TCell(value=b"v", timestamp=5)
    assert idl.hbase.TCell(b"v", 5) != idl.hbase.TCell(b"v", 6)
    assert idl.hbase.TCell(b"v", 5) != idl.hbase.TIncrement()
    assert repr(idl.hbase.TCell(b"v", 5)) == "TCell(value=b'v', timestamp=5)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(idl.hbase.TCell(b"v", 5))
    with pytest.raises(AttributeError, match="ColumnarStore has no get_other"):
        _ = idl.SERVICE.get_other
