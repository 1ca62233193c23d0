"""The master's parts as handlers of a server know them that is not the master: a call for one goes to the master.

Handlers check a call's arguments, and answer looks, as those of a standalone; where they come to the catalogue,
``GoesToMaster`` is raised before anything is done, and the client's message goes on as it came.
"""

from __future__ import annotations

from typing import Any, Protocol

from columnar.errors import GoesToMaster
from columnar.master.staging import Staging


class MasterParts(Protocol):
    """``leading.Leading``, or ``AtMaster``.  Any: a part is the master's own, or stands for it."""

    @property
    def changes(self) -> Any:
        """``master.schema_changes.SchemaChanges``."""

    @property
    def alterations(self) -> Any:
        """``master.alterations.Alterations``."""

    @property
    def region_changes(self) -> Any:
        """``master.region_changes.RegionChanges``."""

    @property
    def triggers(self) -> Any:
        """``master.trigger_changes.TriggerChanges``."""

    @property
    def snapshots(self) -> Any:
        """``master.snapshots.Snapshots``."""


class _Part:
    def __init__(self, **here: Any) -> None:
        """``here``: what of the part this server has itself."""
        self.__dict__.update(here)

    def __getattr__(self, name: str) -> Any:
        raise GoesToMaster(name)


class AtMaster:
    def __init__(self, staging: str) -> None:
        """``staging``: the folder, which all servers share: files that a command brings go to the owners of regions."""
        self.changes = _Part()
        self.alterations = _Part()
        self.region_changes = _Part()
        self.triggers = _Part()
        self.snapshots = _Part(staging=Staging(staging))
