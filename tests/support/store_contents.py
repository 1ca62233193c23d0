"""The writes of tests to a bare store, and their reads from it."""

from __future__ import annotations

from columnar.storage.api import Store

SPACES = frozenset({"a", "b"})


def put(store: Store, space: str, **pairs: str) -> None:
    batch = store.batch()
    for key, value in pairs.items():
        batch.put(space, key.encode(), value.encode())
    store.write_batch(batch)


def contents(store: Store, space: str) -> dict[bytes, bytes]:
    return dict(store.scan(space, b"", None))


def gather(store: Store, *operations: tuple[str, bytes, bytes | None]) -> None:
    batch = store.batch()
    for space, key, value in operations:
        if value is None:
            batch.delete(space, key)
        else:
            batch.put(space, key, value)
    store.gather(batch)


def filled(store: Store, space: str) -> dict[bytes, bytes]:
    pairs = {b"%04d" % n: b"columnar " * (n % 40) for n in range(2_000)}
    batch = store.batch()
    for key, value in pairs.items():
        batch.put(space, key, value)
    store.write_batch(batch)
    return pairs
