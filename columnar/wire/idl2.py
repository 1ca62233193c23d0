"""The interface definition of the Thrift 2 service, as ``idl`` has that of the first; parsed at the first import."""

from __future__ import annotations

from typing import Any, Final

import thriftpy2

from columnar.wire.idl import FILES

hbase2: Final[Any] = thriftpy2.load(str(FILES / "hbase2.thrift"), module_name="hbase2_idl_thrift")
# TGet, TPut, TResult, TIOError, ...
SERVICE2: Final[Any] = hbase2.THBaseService
