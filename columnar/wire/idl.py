"""The interface definitions, parsed once at import (60 ms): what server and client both speak.

The files stand in ``columnar/thrift``; their structs are classes of thriftpy2, whose
constructors take the fields in the order of the file.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any, Final

import thriftpy2


def _load() -> Any:
    with as_file(files("columnar") / "thrift") as folder:
        return thriftpy2.load(str(folder / "columnar.thrift"), module_name="columnar_idl_thrift")


columnar: Final[Any] = _load()  # CheckAndMutateResult, Condition, CompareOp, RowOperation, TriggerStatus, ...
hbase: Final[Any] = columnar.hbase  # TCell, TRowResult, Mutation, BatchMutation, TScan, IOError, ...
SERVICE: Final[Any] = columnar.ColumnarStore  # Hbase and our extension
