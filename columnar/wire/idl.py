"""The interface definitions of server and client as classes, made once at import (some 5 ms).

The IDL files are in ``columnar/thrift``; ``definitions`` describes the classes of their structs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from columnar.wire.definitions import ServiceDefinition, load

_loaded: Final = load((Path(__file__).parents[1] / "thrift" / "columnar.json").read_bytes())

hbase: Final[Any] = _loaded["hbase"]  # TCell, TRowResult, Mutation, BatchMutation, TScan, IOError, ...
columnar: Final[Any] = _loaded["columnar"]  # CheckAndMutateResult, Condition, CompareOp, ...
SERVICE: Final[ServiceDefinition] = columnar.ColumnarStore  # Hbase and our extension
