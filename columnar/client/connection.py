"""A happybase connection that also calls our extension, over the same socket.

HBase's methods are called through happybase's own client, our methods through a second client.  Both clients raise
``IOError`` and ``IllegalArgument`` of ``happybase.hbase``, as subclasses whose ``str()`` is the message (``errors``).
As in happybase, use a connection from one thread only, or use a ``ConnectionPool``.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from columnar.client.admin import Admin
from columnar.client.errors import IllegalArgument, IOError, NotColumnar
from columnar.client.snapshots import Snapshots
from columnar.client.store_connection import StoreConnection
from columnar.client.table import Table
from columnar.client.triggers import Triggers
from columnar.client.view_reader import ViewReader
from columnar.client.views import Definitions, Views

if TYPE_CHECKING:
    from columnar.client.changes import Changes, Start
    from columnar.client.consuming import Consumer, Handler
    from columnar.client.feeds import Feeds
    from columnar.client.happybase_types import HappybasePool as _HappybasePool
    from columnar.client.leases import Lease, Leases
    from columnar.client.queues import Queue, Queues
    from columnar.client.sessions import Session
    from columnar.client.topics import Topic, Topics
else:
    from happybase.pool import ConnectionPool as _HappybasePool


class Connection(StoreConnection):
    """A ``happybase.Connection``, whose calls block.  ``timeout`` is in milliseconds; None waits for ever.

    ``tls_ca`` makes the connection use TLS; ``tls=True`` does, too, with the authorities that this system trusts.
    ``tls_cert`` and ``tls_key`` are the client's own certificate.  ``tls`` may also be a ``ClientTls`` or an
    ``ssl.SSLContext``.  ``unix_socket`` is a path that replaces host and port.

    ``user`` signs in to a store with rights, with ``password`` or ``token`` (``sasl_socket``).  Over a Unix socket it
    may have neither: the operating system's user is that user, or is root and acts as that user.

    ``host`` may be several addresses, as a list of ``HOST:PORT`` or as one text with commas: the first that answers is
    used, and the next one once its connection breaks.  A call that was sent is then called again only if it changes
    nothing; else its error is raised, because the outcome is unknown.

    With ``routing`` calls go to the servers that own their rows, which saves the forwarding: rows, batches (cut by
    owners) and scans.  docs/connecting.md describes both.
    """

    def table(self, name: bytes | str, use_prefix: bool = True) -> Table:
        wire_name = name.encode() if isinstance(name, str) else name
        return Table(self._table_name(wire_name) if use_prefix else wire_name, self)

    def create_table(
        self,
        name: bytes | str,
        families: Mapping[Any, Mapping[str, Any]],
        *,
        attributes: Mapping[str, str] | None = None,
        splits: Sequence[bytes] = (),
    ) -> None:
        """Create a table as happybase does; with ``attributes`` or ``splits`` as ``admin`` does, by its defaults."""
        if not attributes and not splits:
            super().create_table(name, families)
            return
        self.admin.create_table(self._table_name(name), families, attributes, splits=splits)

    def delete_table(self, name: bytes | str, disable: bool = False) -> None:
        """Delete a table as happybase does.

        With ``disable`` the table is disabled and dropped in one step, and stays enabled if the drop is refused.
        """
        if not disable:
            super().delete_table(name)
            return
        try:
            self.call("columnarDropTable", self._table_name(name))
        except NotColumnar:
            was_enabled = self.is_table_enabled(name)  # on a plain HBase in two calls
            if was_enabled:
                self.disable_table(name)
            try:
                super().delete_table(name)
            except (IOError, IllegalArgument):
                if was_enabled:
                    self.enable_table(name)
                raise

    def status(self) -> Any:
        """Return the server's StatusReport: version, tables with sizes, open regions, requests by method."""
        return self.call("columnarStatus")

    def flows(self) -> str:
        """Return the graph of flows, from tables through triggers and views, as JSON (docs/operations.md)."""
        found = self.call("columnarFlows")
        return found.decode() if isinstance(found, bytes) else str(found)

    @property
    def admin(self) -> Admin:
        """The administration over this connection, which takes whole table names and ignores ``table_prefix``."""
        return Admin(self)

    @property
    def triggers(self) -> Triggers:
        return Triggers(self)

    @property
    def views(self) -> Views:
        return Views(self)

    def view(self, name: str) -> ViewReader:
        """Return a reader of the view ``name``, which requests the view's definition at its first read."""
        return ViewReader(self, Definitions(self.views, name))

    def session(self, token: str = "") -> Session:
        """Return a session, whose ``wait`` waits until its own writes have reached triggers and views.

        ``token``: of an earlier session, which continues with its writes (docs/sessions.md).
        """
        from columnar.client.sessions import Session  # few programs wait for their writes

        return Session(self, token)

    def queue(self, name: bytes | str) -> Queue:
        """Return the queue ``name``, which needs no creation (docs/queues.md)."""
        from columnar.client.queues import Queue  # few programs use queues

        return Queue(self, name)

    @property
    def queues(self) -> Queues:
        from columnar.client.queues import Queues

        return Queues(self)

    def topic(self, name: str) -> Topic:
        """Return the topic ``name``, to produce and read records (docs/topics.md)."""
        from columnar.client.topics import Topic  # few programs use topics

        return Topic(self, name)

    @property
    def topics(self) -> Topics:
        """The topics of the store: make, list, configure and drop them."""
        from columnar.client.topics import Topics

        return Topics(self)

    @property
    def feeds(self) -> Feeds:
        """The feeds of the store: tables whose changes go into topics (docs/topics.md)."""
        from columnar.client.feeds import Feeds

        return Feeds(self)

    def changes(
        self,
        name: bytes | str,
        *,
        start: Start = "now",
        columns: Sequence[bytes | str] = (),
        where: Sequence[str] = (),
        rows: tuple[bytes | str, bytes | str] | None = None,
        part: tuple[int, int] | None = None,
        before: bool = False,
        after: bool = False,
        snapshot: bool = False,
        consolidate: bool = False,
        follow: bool = True,
        heartbeats: bool = False,
        max_bytes: int = 0,
        poll_ms: int = 20_000,
        group: str = "",
    ) -> Changes:
        """Return an iterator of the changes of a table with the attribute CHANGE_LOG (``client.changes``).

        ``start``: ``"now"``; ``"beginning"``: the rows that are there, then their changes, without gap or repeat; a
        position (bytes) of an earlier event; or a time.  ``columns``: families or columns; ``where``: conditions on
        the row after the change, as ``"meta:state = ready"``; ``rows``: the first row, and the row before which it
        ends; ``part=(i, n)``: the rows whose CRC-32 modulo n is i.  ``before`` and ``after`` add the row's cells; they
        and ``where`` need the table's attribute CHANGE_LOG_IMAGES.  ``snapshot``: where the log no longer reaches,
        events say which rows to forget, and these rows follow; else ChangesGone is raised.  ``consolidate``: changes of
        a row within a reply become one, so a reader that is far behind catches up faster.  ``follow=False`` ends at the
        log's present end.  ``group``: share the changes with all readers of this name (``client.group_changes``).
        """
        from columnar.client.changes import open_changes  # few programs follow changes

        wire_name = self._table_name(name.encode() if isinstance(name, str) else name)
        open_stream: Callable[..., Changes] = open_changes
        if group:
            from columnar.client.group_changes import open_member

            open_stream = partial(open_member, group=group)
        return open_stream(
            self, wire_name, start=start, columns=columns, where=where, rows=rows, part=part, before=before,
            after=after, snapshot=snapshot, consolidate=consolidate, follow=follow, heartbeats=heartbeats,
            max_bytes=max_bytes, poll_ms=poll_ms,
        )  # fmt: skip

    def consume(
        self,
        name: bytes | str,
        *,
        group: str,
        handler: Handler,
        batch: int = 100,
        tries: int = 5,
        longest_s: float = 300.0,
        **options: Any,
    ) -> Consumer:
        """Return a loop that hands the changes of a table to ``handler``, as a member of a group.

        ``run`` it (``client.consuming``).  ``handler`` gets lists of at most ``batch`` events, and is called up to
        ``tries`` times for each.  It keeps its rows for ``longest_s`` seconds for each.  ``options`` are those of
        ``changes``.
        """
        from columnar.client.consuming import open_consumer  # few programs follow changes

        return open_consumer(self, name, group, handler, batch=batch, tries=tries, longest_s=longest_s, options=options)

    def lease(self, name: bytes | str, *, ttl_ms: int = 10_000, wait_ms: int = 60_000, holder: str = "") -> Lease:
        """Return a lease to acquire, as ``with connection.lease("import") as lease``, which renews itself.

        ``ttl_ms``: how long others wait after this program died.  ``wait_ms``: how long ``with`` waits until the lease
        is free; then LeaseNotFree is raised.  ``holder`` is for people; without it they see the machine's name.
        """
        from columnar.client.leases import Lease, new_holder  # few programs need leases

        return Lease(self, name, ttl_ms, wait_ms, new_holder(holder))

    @property
    def leases(self) -> Leases:
        from columnar.client.leases import Leases

        return Leases(self)

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self)


class ConnectionPool(_HappybasePool):
    """happybase's connection pool, with our connections."""

    if TYPE_CHECKING:

        def connection(self, timeout: float | None = None) -> AbstractContextManager[Connection]: ...

    def __init__(self, size: int, **kwargs: Any) -> None:
        """Make ``size`` connections, and connect the first one; ``kwargs`` are the arguments of ``Connection``."""
        if not isinstance(size, int):
            raise TypeError("Pool 'size' arg must be an integer")
        if size <= 0:
            raise ValueError("Pool 'size' arg must be greater than zero")
        # happybase's own constructor makes connections of happybase's class, which lacks our arguments.
        self._lock = threading.Lock()
        self._queue: queue.LifoQueue[Connection] = queue.LifoQueue(maxsize=size)
        self._thread_connections = threading.local()
        for _ in range(size):
            self._queue.put(Connection(**{**kwargs, "autoconnect": False}))
        with self.connection():  # an address that cannot be resolved is found out now
            pass
