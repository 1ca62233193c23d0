"""Our methods that wait until writes have reached triggers, views and feeds, and until their sends are done."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import IllegalArgument, TriggerError
from columnar.flows.follower_name import OUTBOX, TRIGGER, FollowerName
from columnar.flows.hub import Hub
from columnar.flows.waiting import checked_tokens
from columnar.model.derivations import VIEW
from columnar.model.flow_graph import Flow, Graph
from columnar.model.flow_status import PUSH
from columnar.model.flow_waits import queue_before, wait_steps
from columnar.runtime.long_waits import LongWaits
from columnar.triggers.queue_registrations import served_flows
from columnar.triggers.trigger_manager import TriggerManager
from columnar.views.local_views import LocalViews

if TYPE_CHECKING:
    from columnar.triggers.cluster_triggers import ClusterTriggers

ALL: Final = "*"  # a token: all writes so far
AWAITED_NAMES: Final = 1_000  # of one call; each is looked up among all triggers and views
LONGEST_WAIT_MS: Final = 600_000
Keys = set[FollowerName]


class WaitMethods:
    """Waits of clients for their writes.  Owned by the loop."""

    def __init__(self, manager: TriggerManager, views: LocalViews, waits: LongWaits | None = None) -> None:
        self._manager = manager
        self._views = views
        self._waits = waits or LongWaits()
        self._others: ClusterTriggers | None = None  # None: this process has all regions

    def join_cluster(self, others: ClusterTriggers) -> None:
        """Wait at all owners of regions from now on."""
        self._others = others

    def columnarWait(self, _ctx: Any, names: Any, tokens: Any, timeout_ms: int | None, downstream: Any) -> Any:
        """Wait for triggers, views and feeds, each after those that feed it; ``downstream``: also for those it feeds.

        Without names for all of them, and for the outbox.  Raises TriggerError if one that is named is removed
        meanwhile, and IllegalArgument if a write reaches it only through a queue.  A generation of a view that is
        swapped in meanwhile is waited for, too.
        """
        ends_s = monotonic() + self._bounded_s(timeout_ms)
        token = _joined(tokens or ())
        if len(names or ()) > AWAITED_NAMES:
            raise IllegalArgument(
                f"{len(names)} names: a wait takes at most {AWAITED_NAMES}; name none to wait for all"
            )
        return self._until_end(self._all_pass([name or "" for name in names or ()], token, ends_s, bool(downstream)))

    async def _all_pass(self, names: list[str], token: str, ends_s: float, downstream: bool) -> bool:
        keys, waited = self._named(names), None
        while keys != waited:
            flows = await self._flows(ends_s)
            if flows is None:
                return False
            wanted = [flow for flow in flows if flow.kind != PUSH and (not names or (flow.kind, flow.name) in keys)]
            if len(wanted) < len(keys):
                return False  # one was removed just now: the next wait says so
            steps = wait_steps(Graph(flows), wanted, token, downstream=downstream)
            if not await self._passes(steps, ends_s):
                return False
            if keys and PUSH in {flow.kind for flow in flows} and not await self._is_direct(keys, token, ends_s):
                return False
            keys, waited = self._named(names), keys
        return True

    async def _is_direct(self, keys: Keys, token: str, ends_s: float) -> bool:
        """Return True; False if a server of the cluster did not say in time where the outbox has sent.

        Raises IllegalArgument if writes of ``token`` reach one of ``keys`` only through a queue.
        """
        flows = await self._flows(ends_s)
        if flows is None:
            return False
        tables, graph = self._hub.waits.written_tables(token) or (), Graph(flows)
        for flow in flows:
            found = queue_before(graph, flow, tables) if (flow.kind, flow.name) in keys else None
            if found is not None:
                table, queue = found
                raise IllegalArgument(
                    f"{flow} gets what was written to {table} through {queue}, and no wait goes on behind a queue: "
                    f"wait until {flow} shows it, or write to its tables in an effect of a trigger"
                )
        return True

    def columnarTriggerWait(self, _ctx: Any, trigger: str, token: str, timeout_ms: int | None) -> Any:
        """Wait for a trigger, or a view or feed of that name, behind the views that feed it; "": for all triggers.

        Triggers that feed the trigger are not waited for.
        """
        ends_s, joined = monotonic() + self._bounded_s(timeout_ms), _joined([token])
        if not trigger:
            return self._until_end(self._has_delivered(FollowerName(TRIGGER, ""), joined, ends_s))
        return self._until_end(self._passes(self._steps_after_views(self._keys_of(trigger)[0], joined), ends_s))

    def columnarViewWait(self, _ctx: Any, view: str, token: str, timeout_ms: int | None) -> Any:
        """Wait for a view, behind the views that feed it."""
        ends_s = monotonic() + self._bounded_s(timeout_ms)
        name = FollowerName(VIEW, self._views.views.known(self._views.views.live_table(view or "")).name)
        return self._until_end(self._passes(self._steps_after_views(name, _joined([token])), ends_s))

    # --- flows -----------------------------------------------------------------------------------------------

    @property
    def _hub(self) -> Hub:
        return self._manager.hub

    def _steps_after_views(self, key: FollowerName, token: str) -> list[tuple[Flow, str]]:
        flows = [flow for flow in self._hub.flows() if flow.kind == VIEW or (flow.kind, flow.name) == key]
        return wait_steps(Graph(flows), [flow for flow in flows if (flow.kind, flow.name) == key], token)

    async def _flows(self, ends_s: float) -> list[Flow] | None:
        """Return all flows; None if a server of the cluster did not say in time where its flows write."""
        manager = self._manager
        served = served_flows(manager.registrations(), manager.places_of_effects.seen)
        flows = [*manager.hub.flows(), *served]
        kinds = {flow.kind for flow in flows}
        is_told = all(flow.writes for flow in flows if flow.kind == TRIGGER) and not {OUTBOX, PUSH} <= kinds
        if self._others is None or is_told:
            return flows
        return await self._others.all_flows(max(0.0, ends_s - monotonic()))

    def _named(self, names: Iterable[str]) -> Keys:
        return {key for name in names for key in self._keys_of(name)}

    def _keys_of(self, name: str) -> list[FollowerName]:
        """Return the trigger, view and feed of the name, and the outbox if it is meant.

        Raises TriggerError if there is none, IllegalArgument for a queue or topic, and the kind's error if one rests.
        """
        kind, _, queue = name.partition(":")
        if queue and kind in ("queue", "topic"):
            raise IllegalArgument(
                f"no wait is for {name}, because its messages are taken in the order of its consumers; columnar "
                f"{kind} {'stats' if kind == 'queue' else 'groups'} {queue} shows how many are left"
            )
        keys = self._hub.named(name)
        if not keys:
            raise TriggerError(f"there is no trigger, view or feed {name!r}; columnar flows shows those that there are")
        return keys

    # --- waits -----------------------------------------------------------------------------------------------

    def _bounded_s(self, timeout_ms: int | None) -> float:
        """Return how long a call waits.  Raises IllegalArgument."""
        if not 0 <= (timeout_ms or 0) <= LONGEST_WAIT_MS:
            raise IllegalArgument(f"a wait takes 0 to {LONGEST_WAIT_MS} ms, not {timeout_ms}")
        return self._waits.bounded_s((timeout_ms or 0) / 1000)

    def _until_end(self, wait: Coroutine[Any, Any, bool]) -> Coroutine[Any, Any, bool]:
        return self._waits.run(wait, in_vain=False)

    async def _passes(self, steps: Iterable[tuple[Flow, str]], ends_s: float) -> bool:
        for flow, token in steps:
            if not await self._has_delivered(FollowerName(flow.kind, flow.name), token, ends_s):
                return False
        return True

    async def _has_delivered(self, name: FollowerName, token: str, ends_s: float) -> bool:
        timeout_s = max(0.0, ends_s - monotonic())
        if self._others is None:
            return await self._hub.wait_delivered(name, token, timeout_s)
        return await self._others.wait_delivered(self._hub.awaited_tables(name, token), name.key, token, timeout_s)


def _joined(tokens: Iterable[str | None]) -> str:
    """Return a token for each region, joined; empty, for all writes so far, without tokens or if one is ALL."""
    named = [token for token in tokens if token]
    if not named or ALL in named:
        return ""
    return ",".join([changes.token for changes in checked_tokens(",".join(named))])
