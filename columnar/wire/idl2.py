"""The interface definition of the Thrift 2 service as classes, made at import, as ``idl`` is for Thrift 1.

This module is separate, because most stores do not serve Thrift 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from columnar.wire.definitions import ServiceDefinition, load

_FILE: Final = Path(__file__).parents[1] / "thrift" / "hbase2.json"

hbase2: Final[Any] = load(_FILE.read_bytes())["hbase2"]  # TGet, TPut, TResult, ...
SERVICE2: Final[ServiceDefinition] = hbase2.THBaseService
