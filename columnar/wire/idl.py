"""The interface definitions, parsed once at import (60 ms): what server and client both speak.

The files stand in ``columnar/thrift``; their structs are classes of thriftpy2, whose
constructors take the fields in the order of the file.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any, Final

import thriftpy2


def _load(name: str) -> Any:
    with as_file(files("columnar") / "thrift") as folder:
        return thriftpy2.load(str(folder / f"{name}.thrift"), module_name=f"{name}_idl_thrift")


columnar: Final[Any] = _load("columnar")  # CheckAndMutateResult, Condition, CompareOp, RowOperation, TriggerStatus, ...
hbase: Final[Any] = columnar.hbase  # TCell, TRowResult, Mutation, BatchMutation, TScan, IOError, ...
SERVICE: Final[Any] = columnar.ColumnarStore  # Hbase and our extension
hbase2: Final[Any] = _load("hbase2")  # TGet, TPut, TResult, TIOError, ...
SERVICE2: Final[Any] = hbase2.THBaseService  # the Thrift 2 service
