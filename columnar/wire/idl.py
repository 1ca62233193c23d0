"""The interface definitions, parsed once at import (60 ms): what server and client both speak.

The files stand in ``columnar/thrift``; their structs are classes of thriftpy2, whose
constructors take the fields in the order of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import thriftpy2

_FILES: Final = Path(__file__).parents[1] / "thrift"  # importlib.resources would cost 1 MB of imports

columnar: Final[Any] = thriftpy2.load(str(_FILES / "columnar.thrift"), module_name="columnar_idl_thrift")
# CheckAndMutateResult, Condition, CompareOp, RowOperation, TriggerStatus, ...
hbase: Final[Any] = columnar.hbase  # TCell, TRowResult, Mutation, BatchMutation, TScan, IOError, ...
SERVICE: Final[Any] = columnar.ColumnarStore  # Hbase and our extension
