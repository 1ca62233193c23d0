"""Types of happybase's half of the client, which has none of its own: for type checkers, nothing of it runs.

``Connection`` and ``Table`` derive from these while types are checked, and from happybase's classes when they run.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, Self, overload

Name = bytes | str
Row = dict[bytes, bytes]
StampedRow = dict[bytes, tuple[bytes, int]]  # value, timestamp

class Batch(Protocol):
    """Mutations that are sent together; as a context manager at its end."""

    def put(self, row: bytes, data: Mapping[bytes, bytes], wal: bool | None = None) -> None: ...
    def delete(self, row: bytes, columns: Iterable[bytes] | None = None, wal: bool | None = None) -> None: ...
    def send(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

class HappybaseTable:
    name: bytes

    def __init__(self, name: bytes, connection: Any) -> None: ...
    def families(self) -> dict[bytes, dict[str, Any]]: ...
    def regions(self) -> list[dict[str, Any]]: ...
    @overload
    def row(
        self,
        row: bytes,
        columns: Iterable[bytes] | None = None,
        timestamp: int | None = None,
        include_timestamp: Literal[False] = False,
    ) -> Row: ...
    @overload
    def row(
        self,
        row: bytes,
        columns: Iterable[bytes] | None = None,
        timestamp: int | None = None,
        *,
        include_timestamp: Literal[True],
    ) -> StampedRow: ...
    @overload
    def rows(
        self,
        rows: Iterable[bytes],
        columns: Iterable[bytes] | None = None,
        timestamp: int | None = None,
        include_timestamp: Literal[False] = False,
    ) -> list[tuple[bytes, Row]]: ...
    @overload
    def rows(
        self,
        rows: Iterable[bytes],
        columns: Iterable[bytes] | None = None,
        timestamp: int | None = None,
        *,
        include_timestamp: Literal[True],
    ) -> list[tuple[bytes, StampedRow]]: ...
    @overload
    def cells(
        self,
        row: bytes,
        column: bytes,
        versions: int | None = None,
        timestamp: int | None = None,
        include_timestamp: Literal[False] = False,
    ) -> list[bytes]: ...
    @overload
    def cells(
        self,
        row: bytes,
        column: bytes,
        versions: int | None = None,
        timestamp: int | None = None,
        *,
        include_timestamp: Literal[True],
    ) -> list[tuple[bytes, int]]: ...
    @overload
    def scan(
        self,
        row_start: bytes | None = None,
        row_stop: bytes | None = None,
        row_prefix: bytes | None = None,
        columns: Iterable[bytes] | None = None,
        filter: Name | None = None,
        timestamp: int | None = None,
        include_timestamp: Literal[False] = False,
        batch_size: int | None = 1000,
        scan_batching: int | None = None,
        limit: int | None = None,
        sorted_columns: bool = False,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Row]]: ...
    @overload
    def scan(
        self,
        row_start: bytes | None = None,
        row_stop: bytes | None = None,
        row_prefix: bytes | None = None,
        columns: Iterable[bytes] | None = None,
        filter: Name | None = None,
        timestamp: int | None = None,
        *,
        include_timestamp: Literal[True],
        batch_size: int | None = 1000,
        scan_batching: int | None = None,
        limit: int | None = None,
        sorted_columns: bool = False,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, StampedRow]]: ...
    def put(self, row: bytes, data: Mapping[bytes, bytes], timestamp: int | None = None, wal: bool = True) -> None: ...
    def delete(
        self, row: bytes, columns: Iterable[bytes] | None = None, timestamp: int | None = None, wal: bool = True
    ) -> None: ...
    def batch(
        self,
        timestamp: int | None = None,
        batch_size: int | None = None,
        transaction: bool = False,
        wal: bool = True,
    ) -> Batch: ...
    def counter_get(self, row: bytes, column: bytes) -> int: ...
    def counter_set(self, row: bytes, column: bytes, value: int = 0) -> None: ...
    def counter_inc(self, row: bytes, column: bytes, value: int = 1) -> int: ...
    def counter_dec(self, row: bytes, column: bytes, value: int = 1) -> int: ...

class HappybaseConnection:
    host: str
    port: int
    timeout: int | None
    transport: Any
    client: Any
    table_prefix: Name | None
    table_prefix_separator: Name
    _transport_class: Any
    _protocol_class: Any

    def __init__(
        self,
        host: str = "localhost",
        port: int = 9090,
        timeout: int | None = None,
        autoconnect: bool = True,
        table_prefix: Name | None = None,
        table_prefix_separator: Name = b"_",
        compat: str = "0.98",
        transport: str = "buffered",
        protocol: str = "binary",
    ) -> None: ...
    def _table_name(self, name: Name) -> bytes: ...
    def open(self) -> None: ...
    def close(self) -> None: ...
    def tables(self) -> list[bytes]: ...
    def create_table(self, name: Name, families: Mapping[Any, Mapping[str, Any]]) -> None: ...
    def delete_table(self, name: Name, disable: bool = False) -> None: ...
    def enable_table(self, name: Name) -> None: ...
    def disable_table(self, name: Name) -> None: ...
    def is_table_enabled(self, name: Name) -> bool: ...
    def compact_table(self, name: Name, major: bool = False) -> None: ...

class HappybasePool:
    _queue: Any

    def __init__(self, size: int, **options: Any) -> None: ...
    def connection(self, timeout: float | None = None) -> AbstractContextManager[Any]: ...
