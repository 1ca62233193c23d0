"""(pure) Lists of records in msgpack, as our own Thrift methods send them; each record is a map by field names.

A reader ignores unknown fields, which come from a newer version; a missing field gets its default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from columnar.errors import DamagedData

R = TypeVar("R")


def pack_records(records: Sequence[object]) -> bytes:
    import msgspec  # 2 MB, needed for administration alone

    return msgspec.msgpack.encode(records)


def unpack_records(data: bytes, kind: type[R]) -> list[R]:
    """Decode a list of records.  Raises DamagedData if the bytes are no records of that kind."""
    import msgspec

    try:
        found: list[R] = msgspec.msgpack.decode(data, type=list[kind])  # type: ignore[valid-type]  # its argument
    except msgspec.MsgspecError as error:
        raise DamagedData(f"a list of {kind.__name__}: {error}") from error
    return found
