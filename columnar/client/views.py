"""Views from a client: declare, list, wait for, check, rebuild and swap them; ``view_reader`` reads them."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from columnar.client.errors import WrongArgument, wrong_arguments
from columnar.model.flow_status import CheckReport, ViewStatus
from columnar.model.record_codec import unpack_records
from columnar.model.view_definition import View, checked, to_json

if TYPE_CHECKING:
    from columnar.client.connection import Connection

REMEMBERED_S: Final = 5.0  # a definition, by a reader: a generation that was swapped out is kept up for much longer


class Views:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # --- declaring -----------------------------------------------------------------------------------

    def add(self, view: View) -> None:
        """Declare a view: from now on it follows its sources, and existing rows are backfilled meanwhile.

        Adding the very same view again changes nothing; another one under a name that is taken is an IllegalArgument.
        ``wait`` returns when it is built.
        """
        with wrong_arguments():
            definition = to_json(checked(view))
        self._connection.call("columnarViewAdd", definition)

    def drop(self, name: str) -> None:
        """Drop the view, all its generations and their tables."""
        self._connection.call("columnarViewDrop", name)

    def list(self) -> list[ViewStatus]:
        """Return all generations of all views, by name."""
        return unpack_records(self._connection.call("columnarViews"), ViewStatus)

    def status(self, name: str) -> ViewStatus:
        """Return the status of the generation that readers see.  Raises IllegalArgument if there is no such view."""
        found = next((one for one in self.list() if one.name == name and one.role == "live"), None)
        if found is None:
            raise WrongArgument(f"there is no view {name}; columnar view list shows those there are")
        return found

    def wait(self, name: str, token: str = "", timeout_ms: int = 5_000) -> bool:
        """Block until the view shows the change ``token`` (none: all that is written now); False: not in time."""
        return bool(self._connection.call("columnarViewWait", name, token, timeout_ms))

    def rebuild(self, name: str, view: View | None = None) -> str:
        """Build the next generation beside the live one, with another definition or the same; the name of its table.

        ``list`` shows how far it is; ``swap`` has readers see it.
        """
        with wrong_arguments():
            definition = to_json(checked(view)) if view is not None else b""
        return _text(self._connection.call("columnarViewRebuild", name, definition))

    def swap(self, name: str) -> tuple[str, str]:
        """Readers of the name see the next generation from now on; (its table, the one before)."""
        live, kept = self._connection.call("columnarViewSwap", name)
        return _text(live), _text(kept)

    def rollback(self, name: str) -> tuple[str, str]:
        """Readers see the generation before again, which is kept up for an hour after a swap; as ``swap``."""
        live, kept = self._connection.call("columnarViewRollback", name)
        return _text(live), _text(kept)

    def check(self, name: str, *, repair: bool = False) -> CheckReport:
        """Prove that the view equals its tables; with ``repair`` repair differences.

        Reads both sides once, while writers write: the connection's ``timeout`` must allow for that.
        """
        (report,) = unpack_records(self._connection.call("columnarCheckView", name, repair), CheckReport)
        return report


class Definitions:
    """The definition of a view as a reader works by it: requested, and remembered for REMEMBERED_S."""

    def __init__(self, views: Views, name: str, clock: Callable[[], float] = monotonic) -> None:
        self._views = views
        self._name = name
        self._clock = clock
        self._known: tuple[View, str] | None = None
        self._until_s = 0.0

    def __call__(self) -> tuple[View, str]:
        """Return the view, and the name of its generation for reads.  Raises IllegalArgument if none can be read."""
        now_s = self._clock()
        if self._known is None or now_s >= self._until_s:
            status = self._views.status(self._name)
            definition = status.definition
            if definition is None:
                raise WrongArgument(f"view {self._name} was declared by a newer version: upgrade this program")
            self._known, self._until_s = (definition, f"{status.name}@{status.generation}"), now_s + REMEMBERED_S
        return self._known


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
