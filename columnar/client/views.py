"""Administration of views by a client: declare, list, wait, check, rebuild, swap.  ``view_reader`` reads views."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from columnar.client.delivery_waits import wait_within
from columnar.client.errors import WrongArgument, wrong_arguments
from columnar.model.flow_status import CheckReport, ViewStatus
from columnar.model.record_codec import unpack_records
from columnar.model.view_definition import View, checked, to_json

if TYPE_CHECKING:
    from columnar.client.connection import Connection

REMEMBERED_S: Final = 5.0  # of a reader's definition; swapped-out generations are maintained much longer


class Views:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # --- declaring -----------------------------------------------------------------------------------

    def add(self, view: View) -> None:
        """Declare a view, which follows its sources from now on while existing rows are backfilled.

        Adding an identical view changes nothing; a different one under the same name raises IllegalArgument. ``wait``
        returns when the view is built.
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
        """Return the status of the generation that readers see.  Raises IllegalArgument if the view does not exist."""
        found = next((one for one in self.list() if one.name == name and one.role == "live"), None)
        if found is None:
            raise WrongArgument(f"there is no view {name}; columnar view list shows those there are")
        return found

    def wait(self, name: str, token: str = "", timeout_ms: int = 5_000) -> bool:
        """Block until the view includes the change ``token``, or if it is empty, all changes written so far.

        Returns False after ``timeout_ms``.
        """
        return wait_within(timeout_ms, partial(self._connection.call, "columnarViewWait", name, token))

    def rebuild(self, name: str, view: View | None = None) -> str:
        """Build the next generation beside the live one, with the definition ``view`` or the same.

        Returns the name of the generation's table.  ``list`` shows the progress; ``swap`` makes readers use the
        generation.
        """
        with wrong_arguments():
            definition = to_json(checked(view)) if view is not None else b""
        return _text(self._connection.call("columnarViewRebuild", name, definition))

    def swap(self, name: str) -> tuple[str, str]:
        """Make readers of ``name`` use the next generation.  Returns its table and that of the previous one."""
        live, kept = self._connection.call("columnarViewSwap", name)
        return _text(live), _text(kept)

    def rollback(self, name: str) -> tuple[str, str]:
        """Make readers use the previous generation again, which is maintained for an hour after a swap.

        Returns the two tables as ``swap`` does.
        """
        live, kept = self._connection.call("columnarViewRollback", name)
        return _text(live), _text(kept)

    def check(self, name: str, *, repair: bool = False) -> CheckReport:
        """Check that the view equals what its source tables give; with ``repair`` correct the differences.

        Reads tables and view once, while writers continue; the connection's ``timeout`` must be long enough.
        """
        (report,) = unpack_records(self._connection.call("columnarCheckView", name, repair), CheckReport)
        return report


class Definitions:
    """The definition of a view for a reader: requested from the store, and kept for REMEMBERED_S."""

    def __init__(self, views: Views, name: str, clock: Callable[[], float] = monotonic) -> None:
        self._views = views
        self._name = name
        self._clock = clock
        self._known: tuple[View, str] | None = None
        self._until_s = 0.0

    def __call__(self) -> tuple[View, str]:
        """Return the view's definition and its readable generation's name.  Raises IllegalArgument if there is none."""
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
