"""What a server reports again over each link to a leader, because a report may be lost with the link before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

from columnar.roles.region_owner import RegionOwner
from columnar.roles.regionserver import ClusterServer


def test_views_being_built_are_reported_again_if_they_have_all_rows_of_a_region() -> None:
    """A report that is lost leaves the view unfinished for as long as the leader leads."""
    kept = [("done", "live"), ("here", "building"), ("elsewhere", "building")]
    views = Mock()
    views.views.all = [SimpleNamespace(name=name, state=state) for name, state in kept]
    views.backfilled_regions = lambda names: {name: {"here": [7], "elsewhere": []}[name] for name in names}
    owner = cast(Any, SimpleNamespace(views=views, _report_backfilled=Mock()))
    RegionOwner.leader_linked(owner)
    assert [call.args for call in owner._report_backfilled.call_args_list] == [("here",)]


def test_a_server_reports_with_each_link() -> None:
    server = Mock()
    ClusterServer.leader_linked(server)
    server.leader_link.report_soon.assert_called_once()
    server.serving.owner.leader_linked.assert_called_once_with()
