"""Metrics of views."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from columnar.model.flow_status import ViewStatus, merged
from columnar.webui.families import of_views


def test_a_store_without_views_shows_nothing_of_them() -> None:
    assert list(of_views(cast(Any, SimpleNamespace(views=())))) == []


def test_looks_of_servers_are_added_up_and_shown() -> None:
    looks = [
        ViewStatus("v", 3, 1.5, 1, 10, ""),
        ViewStatus("v", 4, 0.5, 2, 20, "why"),
        ViewStatus("w", 0, 0.0, 0, 1, ""),
    ]
    found = {one.table: one for one in merged(looks)}
    assert found["v"] == ViewStatus("v", 7, 1.5, 3, 30, "why")
    families = {
        one.name: dict(one.samples) for one in of_views(cast(Any, SimpleNamespace(views=tuple(found.values()))))
    }
    assert families == {
        "columnar_view_lag_changes": {("v",): (7.0,), ("w",): (0.0,)},
        "columnar_view_lag_seconds": {("v",): (1.5,), ("w",): (0.0,)},
        "columnar_view_rejected_rows": {("v",): (3.0,), ("w",): (0.0,)},
        "columnar_view_built_rows": {("v",): (30.0,), ("w",): (1.0,)},
    }
