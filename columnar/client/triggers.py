"""Administration of triggers by a client: add, pause, list, wait for deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from columnar.client.delivery_waits import wait_within
from columnar.model.flow_status import ListedTrigger
from columnar.model.record_codec import unpack_records
from columnar.model.trigger_registration import Registration, to_json
from columnar.wire.dead_letter import DeadLetter

if TYPE_CHECKING:
    from columnar.client.connection import Connection


class Triggers:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self,
        name: str,
        table: bytes,
        function: str,
        families: Sequence[bytes],
        *,
        before: bool = False,
        from_where: str = "now",
        timeout_ms: int = 0,
        attempts: int = 0,
        row: bool = True,
        side_by_side: int = 0,
        share: int = 0,
        rate: str = "",
        batch: int = 0,
        within_ms: int = 0,
        process: str = "",
        columns: Sequence[bytes] = (),
        where: Sequence[str] = (),
        look: Sequence[tuple[str, str, str]] = (),
        images: bool = False,
        writes: Sequence[str] = (),
        allow_cycle: bool = False,
        allow_expiry: bool = False,
    ) -> None:
        """Register ``function`` ("module:function") on ``families`` of ``table`` under ``name``.

        Registering the same again changes nothing; a different trigger under the name raises IllegalArgument.  With
        ``before`` changes carry the previous cells, with ``row`` the row at delivery, which costs a read.
        ``from_where`` is ``now``, ``beginning`` (every existing row counts as changed), or a time.  ``rate`` limits the
        calls begun, as 10/s, 600/min, 5/h or 1/d.  With ``batch`` the function takes a sequence of at most ``batch``
        changes, which waits ``within_ms`` for more. ``triggers.api.on`` has the others; 0 is the default.
        """
        self.register(
            Registration(
                name=name,
                table=table.decode(),
                function=function,
                families=tuple(sorted(family.decode("latin-1") for family in families)),
                before=before,
                from_where=from_where,
                timeout_ms=timeout_ms,
                attempts=attempts,
                row=row,
                side_by_side=side_by_side,
                share=share,
                rate=rate,
                batch=batch,
                within_ms=within_ms,
                process=process,
                columns=tuple(sorted(column.decode("latin-1") for column in columns)),
                where=tuple(where),
                look=tuple(look),
                images=images,
                writes=tuple(sorted(writes)),
                allow_cycle=allow_cycle,
                allow_expiry=allow_expiry,
            )
        )

    def register(self, registration: Registration) -> None:
        """Add a trigger, as ``add`` does.  A number of 0 means the server's default."""
        self._connection.call("columnarTriggerAdd", to_json(registration))

    def sync(self, declared: Sequence[Registration], removed: Sequence[str] = ()) -> None:
        """Make the triggers equal to a module's declarations; drop the triggers ``removed``, from an earlier sync."""
        self._connection.call("columnarTriggerSync", list(removed), [to_json(one) for one in declared])

    def reload(self) -> None:
        """Have workers load the functions' present source from disk.  Raises IOError if a function cannot be loaded."""
        self._connection.call("columnarTriggerReload")

    def remove(self, name: str) -> None:
        self._connection.call("columnarTriggerRemove", name)

    def list(self) -> list[ListedTrigger]:
        """Return all triggers; ``connection.queues.served`` has the functions that serve queues."""
        found = unpack_records(self._connection.call("columnarTriggers"), ListedTrigger)
        return [one for one in found if one.registration is None or not one.registration.queue]

    def pause(self, name: str) -> None:
        self._connection.call("columnarTriggerPause", name)

    def resume(self, name: str) -> None:
        self._connection.call("columnarTriggerResume", name)

    def replay(self, name: str, from_ms: int = 0) -> None:
        """Deliver again what was written since ``from_ms`` (milliseconds since 1970), or with 0 every row."""
        self._connection.call("columnarTriggerReplay", name, from_ms)

    def dead_letters(self, name: str = "", limit: int = 100) -> list[DeadLetter]:  # type: ignore[valid-type]
        return self._dead(name, b"", limit, with_changes=False)

    def show_dead(self, name: str, row: bytes = b"", limit: int = 1) -> list[DeadLetter]:  # type: ignore[valid-type]
        """Return at most 10 dead letters of a trigger, with their changes, of one row or of all rows."""
        return self._dead(name, row, limit, with_changes=True)

    def _dead(self, name: str, row: bytes, limit: int, *, with_changes: bool) -> list[DeadLetter]:  # type: ignore[valid-type]
        return unpack_records(self._connection.call("columnarTriggerDead", name, row, limit, with_changes), DeadLetter)

    def retry(self, name: str, row: bytes = b"", *, as_it_was: bool = False) -> int:
        """Deliver a row's dead letters again, or if ``row`` is empty those of all rows.  Returns their number.

        The trigger gets the row's present state, or with ``as_it_was`` the change that failed.
        """
        if not as_it_was:
            return int(self._connection.call("columnarTriggerRetry", name, row))  # earlier servers know it
        return int(self._connection.call("columnarTriggerDeadRetry", name, row, True))

    def skip_dead(self, name: str, row: bytes) -> int:
        """Remove the dead letters of a row without delivering them.  Returns their number."""
        return int(self._connection.call("columnarTriggerDeadSkip", name, row))

    def purge_dead(self, name: str) -> int:
        """Remove all dead letters of a trigger without delivering them.  Returns their number."""
        return int(self._connection.call("columnarTriggerDeadPurge", name))

    def wait(self, name: str = "", sequence: str = "", timeout_ms: int = 5_000) -> bool:
        """Block until the change ``sequence`` is delivered, or if it is empty, all changes written so far.

        Returns False after ``timeout_ms``.
        """
        return wait_within(timeout_ms, partial(self._connection.call, "columnarTriggerWait", name, sequence))
