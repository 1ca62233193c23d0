"""The Thrift 2 service, parsed at import (40 ms): what ``idl`` is for the other one.

A module of its own, because most stores do not serve it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import thriftpy2

_FILES: Final = Path(__file__).parents[1] / "thrift"

hbase2: Final[Any] = thriftpy2.load(str(_FILES / "hbase2.thrift"), module_name="hbase2_idl_thrift")
# TGet, TPut, TResult, TIOError, ...
SERVICE2: Final[Any] = hbase2.THBaseService
