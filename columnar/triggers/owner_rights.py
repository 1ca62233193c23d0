"""The rights of triggers: each acts with those of its owner, the user who added it.

    reads      the owner must have R on all that comes with changes, at each call; until then the changes wait
    effects    the owner must have W on each column, and on everything for a message to a queue; a refused effect fails
               its change, as an error of the function does
    client     the connection of a function acts as the owner (``acting_user``), so its calls are checked as all calls

A trigger without an owner was added while rights were off, and acts as the store itself.  While rights are off,
everything is allowed.

At most NOTED refusals of each trigger are lines of the audit log until the registrations change.  Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from columnar.errors import AccessDenied, abbreviate
from columnar.flows.effects import Write
from columnar.model.trigger_registration import Registration

if TYPE_CHECKING:
    from columnar.rights.derivation_parts import PartsByTable
    from columnar.rights.rights_check import RightsHolder

NOTED: Final = 16
_audit: Final = logging.getLogger("columnar.audit")


class OwnerRights:
    def __init__(self, holder: RightsHolder | None) -> None:
        """Pass None if rights are off."""
        self._holder = holder
        self._reads: dict[str, tuple[Registration, PartsByTable]] = {}  # by trigger
        self._noted: dict[str, set[tuple[str, str]]] = {}  # by trigger: scope and action

    def follow(self) -> None:
        """Follow a change of registrations."""
        self._reads.clear()
        self._noted.clear()

    def acting_user(self, registration: Registration) -> str:
        """Return the user for whom the connections of the function sign in; "" for the store itself."""
        return registration.owner if self._holder is not None else ""

    def check_reads(self, registration: Registration) -> None:
        """Raise AccessDenied unless the owner may read all that comes with the trigger's changes."""
        holder = self._holder
        if holder is None or not registration.owner:
            return
        from columnar.rights.derivation_parts import registration_reads, rights_to_serve  # most stores have no users

        known = self._reads.get(registration.name)
        if known is None or known[0] is not registration:
            known = self._reads[registration.name] = registration, registration_reads(registration)
        try:
            if registration.queue:
                holder.check_everything(registration.owner, rights_to_serve(registration))
            for table, parts in known[1].items():
                holder.check_parts(registration.owner, table, parts)
        except AccessDenied as denied:
            self._note(registration, denied)
            raise

    def check_writes(self, registration: Registration, writes: Iterable[Write]) -> None:
        """Raise AccessDenied unless the owner may write all of the effects."""
        holder, owner = self._holder, registration.owner
        if holder is None or not owner:
            return
        from columnar.model.rights import WRITE, right_names
        from columnar.rights.derivation_parts import written_parts

        try:
            for table, mutation in writes:
                if mutation.sends:
                    if not holder.rights().global_rights(owner) & WRITE:
                        raise AccessDenied(owner, "", right_names(WRITE))
                    continue
                if not holder.table_rights(owner, table) & WRITE:
                    holder.check_parts(owner, table, written_parts(mutation.operations))
        except AccessDenied as denied:
            self._note(registration, denied)
            raise

    def _note(self, registration: Registration, denied: AccessDenied) -> None:
        noted, refusal = self._noted.setdefault(registration.name, set()), (denied.scope, denied.action)
        if refusal in noted or len(noted) >= NOTED:
            return
        noted.add(refusal)
        _audit.warning(
            "refused trigger=%s user=%s scope=%s action=%s",
            registration.name,
            registration.owner,
            abbreviate(denied.scope.encode(errors="replace")),
            denied.action,
        )
