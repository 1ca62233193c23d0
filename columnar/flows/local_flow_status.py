"""Status of the flows of one server: each registration of every kind, idle or not, with its followers' work here."""

from __future__ import annotations

from columnar.flows.figures import Figures
from columnar.flows.follower_name import FollowerName
from columnar.flows.followers import Followers
from columnar.model.flow_graph import Flow
from columnar.model.flow_status import FlowStatus


def flow_status_of(
    flow: Flow, state: str, dead: int, followers: Followers, figures: Figures, now_s: float
) -> FlowStatus:
    """``dead``: letters of it, as far as they are known here."""
    name = FollowerName(flow.kind, flow.name)
    local, done = followers.of(name), figures.of(name, now_s)
    errors = [*(one.state.last_error for one in local), *(one.why for one in followers.missing(name).values())]
    return FlowStatus(
        kind=flow.kind,
        name=flow.name,
        reads=tuple(map(str, flow.reads)),
        writes=tuple(map(str, flow.writes)),
        seen=tuple(map(str, flow.seen)),
        state=state,
        lag_changes=sum(one.lag_changes for one in local),
        lag_seconds=max((one.lag_seconds for one in local), default=0.0),
        rate_per_s=done.rate_per_s(now_s),
        delivered=done.delivered,
        failed=done.failed,
        parked=sum(one.state.parked_count for one in local),
        dead=dead,
        runs=done.runs.numbers,
        idle_s=done.idle_s(now_s),
        error=next(filter(None, errors), ""),
    )
