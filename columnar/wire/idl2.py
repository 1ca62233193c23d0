"""The Thrift 2 service as classes, made at import: what ``idl`` is for the other one.

A module of its own, because most stores do not serve it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from columnar.wire.definitions import ServiceDefinition, load

_FILE: Final = Path(__file__).parents[1] / "thrift" / "hbase2.json"

hbase2: Final[Any] = load(_FILE.read_bytes())["hbase2"]  # TGet, TPut, TResult, ...
SERVICE2: Final[ServiceDefinition] = hbase2.THBaseService
