"""Names in a store, for completion: read within a time limit, and remembered for some seconds.

A kind is a line of ``KINDS``: a function that reads names over an open connection.  An argument of a command is
completed by ``shell_complete=completing(kind)`` (``completion``).  After an error there are no names: a person who
presses Tab sees nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from thriftpy2.protocol.cybin import ProtocolError
from thriftpy2.thrift import TException

from columnar.client import ClientTls, ClusterAdmin, Connection
from columnar.client.user_options import ClientUser
from columnar.errors import ColumnarError
from columnar.limits import COMPLETED_NAMES
from columnar.shell.text import readable, typed

ANSWER_S: Final = 0.5  # of one call: a person waits for it
REMEMBERED_S: Final = 5.0


class _Asking:
    """A request for names; ``of`` is the table whose families or regions are wanted, '' for all tables."""

    def __init__(self, connection: Connection, of: str, has_time: Callable[[], bool]) -> None:
        self.connection = connection
        self.of = of
        self._has_time = has_time

    def tables(self) -> Iterable[bytes | str]:
        return list(self.connection.tables())

    def families(self) -> Iterable[bytes | str]:
        return [name.removesuffix(b":") for name in self.connection.table(typed(self.of)).families()]

    def regions(self) -> Iterable[bytes | str]:
        """Return encoded names of regions; for all tables as many as the time limit allows."""
        found: list[bytes | str] = []
        for table in [typed(self.of)] if self.of else self.connection.tables():
            if not self._has_time() or len(found) > COMPLETED_NAMES:
                break
            found += [region.encoded_name for region in self.connection.admin.regions(table)]
        return found

    def servers(self) -> Iterable[bytes | str]:
        return [one.name for one in ClusterAdmin(self.connection).servers().servers]

    def snapshots(self) -> Iterable[bytes | str]:
        return [one.name for one in self.connection.snapshots.list_snapshots()]

    def triggers(self) -> Iterable[bytes | str]:
        return [one.name for one in self.connection.triggers.list()]

    def views(self) -> Iterable[bytes | str]:
        return {one.name for one in self.connection.views.list()}

    def namespaces(self) -> Iterable[bytes | str]:
        return self.connection.admin.namespaces()


KINDS: Final[Mapping[str, Callable[[_Asking], Iterable[bytes | str]]]] = {
    "table": _Asking.tables,
    "family": _Asking.families,
    "region": _Asking.regions,
    "server": _Asking.servers,
    "snapshot": _Asking.snapshots,
    "trigger": _Asking.triggers,
    "view": _Asking.views,
    "namespace": _Asking.namespaces,
}


class StoreNames:
    """The remembered names.  Any thread may call; two threads that need the same names at once both read them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock  # seconds, monotonic
        self._known: dict[tuple[str, str, str], tuple[float, list[str]]] = {}

    def of(
        self, store: str, tls: ClientTls | None, kind: str, of: str = "", *, user: ClientUser | None = None
    ) -> list[str]:
        """Return the names, sorted and as they are typed; no names if the store does not answer in time."""
        now, key = self._clock(), (store, kind, of)
        self._known = {one: known for one, known in self._known.items() if now - known[0] < REMEMBERED_S}
        if key not in self._known:
            self._known[key] = now, self._request_names(store, tls, kind, of, user)
        return self._known[key][1]

    def forget(self) -> None:
        """Forget all names, after a command that may have changed them."""
        self._known = {}

    def _request_names(
        self, store: str, tls: ClientTls | None, kind: str, of: str, user: ClientUser | None
    ) -> list[str]:
        until = self._clock() + ANSWER_S
        if user is not None and not user.is_at_hand:
            return []  # nobody types a password between two letters of a name
        try:
            secrets = user.secrets() if user is not None else {}
            connection = Connection.at(store, timeout=round(ANSWER_S * 1_000), tls=tls, **secrets)
            try:
                found = KINDS[kind](_Asking(connection, of, lambda: self._clock() < until))
                names = {one if isinstance(one, str) else readable(one) for one in found}
            finally:
                connection.close()
        except (ColumnarError, TException, ProtocolError, OSError, EOFError):
            return []
        return sorted(names)[:COMPLETED_NAMES]
