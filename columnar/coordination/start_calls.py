"""Calls of a node's start to the coordination service: a number that was never given, and a name that nobody has.

A number is given only if the write that raised the counter to it has succeeded (N1 of ``api``).  A node does not start
while another one of its name renews its lease.  If two nodes of a name start at the same moment, both may start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final, TypeVar

from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasStore, CasUnavailable, VersionConflict
from columnar.coordination.node_record import NODES, NUMBER, decode_node_record, decode_number, encode_number
from columnar.errors import DamagedData, HostError

START_S: Final = 5.0  # in which a start has its lease, or says why not
CALL_RETRY_S: Final = 0.05
NAME_POLL_S: Final = 0.1
NAME_RENEWALS: Final = 2  # of a record that others renew: the last one of a dead node may still be under way
T = TypeVar("T")


class StartCalls:
    """Calls of the service outside the two threads, for any thread but the loop's: the counter, and who has a name."""

    def __init__(self, connect_store: Callable[[], CasStore], address: str) -> None:
        self._connect_store = connect_store
        self._address = address
        self._lock = threading.Lock()  # one call at a time uses a client

    def next_number(self, floor: int) -> int:
        return self._call(lambda store: _raised_number(store, floor))

    def await_name(self, node: str, fence_s: float) -> None:
        """Return when no node of this name lives.  Raises HostError if it renews its lease."""
        return self._call(lambda store: _await_name(store, node, fence_s))

    def _call(self, call: Callable[[CasStore], T]) -> T:
        with self._lock:
            store = self._connect_store()
            try:
                return self._call_until_answered(store, call)
            finally:
                store.close()

    def _call_until_answered(self, store: CasStore, call: Callable[[CasStore], T]) -> T:
        until_s = monotonic() + START_S
        while True:
            try:
                return call(store)
            except VersionConflict:
                until_s = monotonic() + START_S  # the service answers; another node was faster
            except CasRefused as error:
                raise CasRefused(f"{self._address}: {error.text}") from error
            except (CasUnavailable, CasOutcomeUnknown) as error:
                if monotonic() > until_s:
                    raise CasUnavailable(f"{self._address}: {error.text}") from error
                sleep(CALL_RETRY_S)


def _raised_number(store: CasStore, floor: int) -> int:
    """Raise the counter by one write; only a write that succeeded gives its number (N1)."""
    found = store.read_key(NUMBER)
    number = max(floor, 0 if found is None else decode_number(found.value)) + 1
    if found is None:
        store.create_key(NUMBER, encode_number(number))
    else:
        store.put_key(NUMBER, encode_number(number), found.version)
    return number


def _await_name(store: CasStore, node: str, fence_s: float) -> None:
    """Watch the records of this name: one that stands still for ``fence_s`` is of a dead node (L2 of ``lease``)."""
    renewals, versions, still_since_s = 0, dict[str, int](), monotonic()
    while True:
        found = {
            key: stored.version
            for key, stored in store.list_keys(NODES).items()
            if key.startswith(f"{NODES}/{node}.") and not _is_withdrawn(stored.value)
        }
        if any(versions.get(key, version) != version for key, version in found.items()):
            renewals, still_since_s = renewals + 1, monotonic()
        if renewals >= NAME_RENEWALS:
            raise HostError(f"a node named {node} runs already; choose another name with --name, or stop that node")
        if not found or monotonic() - still_since_s > fence_s:
            return
        versions = found
        sleep(NAME_POLL_S)


def _is_withdrawn(value: bytes) -> bool:
    try:
        return decode_node_record(value).withdrawn
    except DamagedData:
        return False  # its version tells whether somebody lives
