"""Our methods on triggers.  Changes go to the master, all other calls to owners of regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from columnar.errors import IllegalArgument, TriggerError
from columnar.model import flow_status
from columnar.model.flow_status import listed
from columnar.model.record_codec import pack_records
from columnar.model.trigger_registration import requested
from columnar.regions.log.change_record import KIND_WORDS, ChangeRecord, Entry, Kind
from columnar.thrift.wait_methods import WaitMethods
from columnar.triggers.dead_letter_store import LETTERS_PER_CALL
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.trigger_manager import TriggerManager
from columnar.wire import dead_letter
from columnar.wire.dead_letter import LetterChange, LoggedCell

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.trigger_changes import TriggerChanges
    from columnar.triggers.cluster_triggers import ClusterTriggers

_EARLIER_METHODS: Final = (
    "columnarTriggerList", "columnarDeadLetters", "columnarTriggerDeadShow", "columnarViewList", "columnarViewCheck",
)  # fmt: skip
_EARLIER_CLIENT: Final = "this store speaks of triggers, views and dead letters in a newer form: upgrade the client"


class TriggerChangeMethods:
    """The methods on triggers that the master serves."""

    def __init__(self, changes: TriggerChanges) -> None:
        self._changes = changes

    def columnarTriggerAdd(self, ctx: Any, registration: bytes | None) -> Any:
        if not registration:
            raise IllegalArgument(_EARLIER_CLIENT)
        return self._changes.add_trigger(requested(registration, ctx.user))

    def columnarTriggerSync(self, ctx: Any, remove: Any, registrations: list[bytes] | None) -> Any:
        if registrations is None:
            raise IllegalArgument(_EARLIER_CLIENT)
        return self._changes.sync(
            [requested(one or b"", ctx.user) for one in registrations], [name or "" for name in remove or ()]
        )

    def columnarTriggerReload(self, _ctx: Any) -> Any:
        return self._changes.reload()

    def columnarTriggerRemove(self, _ctx: Any, trigger: str) -> Any:
        return self._changes.remove(trigger or "")

    def columnarTriggerPause(self, _ctx: Any, trigger: str) -> Any:
        return self._changes.pause(trigger or "")

    def columnarTriggerReplay(self, _ctx: Any, trigger: str, from_ms: int | None) -> Any:
        return self._changes.replay(trigger or "", from_ms or 0)

    def columnarTriggerResume(self, _ctx: Any, trigger: str) -> Any:
        return self._changes.resume(trigger or "")


class EarlierMethods:
    """Methods of earlier clients, which are refused because these clients expect a different form of answer."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name not in _EARLIER_METHODS:
            raise AttributeError(name)
        return _refuse_earlier_client


def _refuse_earlier_client(*_request: Any) -> NoReturn:
    raise IllegalArgument(_EARLIER_CLIENT)


class TriggerMethods:
    """The methods on triggers that an owner of regions serves."""

    def __init__(self, manager: TriggerManager, waits: WaitMethods) -> None:
        self.waits = waits
        self._manager = manager
        self._others: ClusterTriggers | None = None  # None: this process has all regions

    def join_cluster(self, others: ClusterTriggers) -> None:
        """Answer for the triggers of all servers from now on, and wait at all owners."""
        self._others = others
        self.waits.join_cluster(others)

    async def columnarTriggers(self, _ctx: Any) -> bytes:
        statuses, silent = self._manager.trigger_statuses(), list[str]()
        if self._others is not None:
            known = {one.name for one in statuses}
            found, silent = await self._others.trigger_statuses()
            statuses = [one for one in found if one.name in known]
        registrations = {one.name: one for one in self._manager.registrations()}
        return pack_records([listed(one, registrations.get(one.name), silent) for one in statuses])

    async def columnarFlows(self, _ctx: Any) -> str:
        looks, silent = (
            (self._manager.hub.flow_statuses(), []) if self._others is None else await self._others.flow_statuses()
        )
        return flow_status.to_json(looks, silent)

    async def columnarTriggerDead(
        self, _ctx: Any, trigger: str, row: bytes, limit: int | None, with_changes: bool
    ) -> bytes:
        if (limit or 0) <= 0:
            raise IllegalArgument(f"the number of dead letters asked for is {limit}; it must be positive")
        if with_changes and not trigger:
            raise IllegalArgument("say which trigger's dead letters to show, and how many")
        letters = self._manager.dead_letter_store
        return pack_records(
            [
                _letter(one)
                for one in (
                    await letters.letters_with_changes(trigger, row or b"", limit or 0)
                    if with_changes
                    else await letters.found(trigger or "", min(limit or 0, LETTERS_PER_CALL))
                )
            ]
        )

    def columnarTriggerRetry(self, ctx: Any, trigger: str, row: bytes) -> Any:
        return self.columnarTriggerDeadRetry(ctx, trigger, row, False)

    def columnarTriggerDeadRetry(self, _ctx: Any, trigger: str, row: bytes, as_it_was: bool) -> Any:
        if not trigger:
            raise TriggerError("say which trigger's dead letters to retry")
        return self._manager.retry(trigger, row or b"", as_it_was=bool(as_it_was))

    def columnarTriggerDeadSkip(self, _ctx: Any, trigger: str, row: bytes) -> Any:
        if not trigger or not row:
            raise IllegalArgument("say whose dead letters to skip: the trigger and the row")
        return self._manager.dead_letter_store.skip(trigger, row)

    def columnarTriggerDeadPurge(self, _ctx: Any, trigger: str) -> Any:
        if not trigger:
            raise IllegalArgument("say which trigger's dead letters to remove")
        return self._manager.dead_letter_store.skip(trigger, b"")


def _letter(letter: DeadLetter) -> dead_letter.DeadLetter:
    return dead_letter.DeadLetter(
        letter.trigger,
        letter.table.encode(),
        letter.row,
        letter.sequence,
        letter.attempts,
        letter.error,
        letter.output,
        letter.timestamp_ms,
        _change(letter.change, letter.lacks_images) if letter.change is not None else None,
    )


def _change(record: ChangeRecord, lacks_images: bool) -> LetterChange:
    steps, before, after = (tuple(map(_cell, cells)) for cells in (record.entries, record.before, record.after))
    return LetterChange(
        stamp=record.stamp,
        client_timestamp=record.timestamp,
        hops=record.hops,
        steps=steps,
        before=before,
        after=after,
        images=record.images is not None,
        lacks_images=lacks_images,
    )


def _cell(entry: Entry) -> LoggedCell:
    column = entry.family if entry.kind is Kind.DELETE_FAMILY else entry.family + b":" + entry.qualifier
    return LoggedCell(KIND_WORDS[entry.kind], column, entry.timestamp, entry.value)
