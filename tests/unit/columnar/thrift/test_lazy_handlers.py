"""Methods whose modules are loaded when they are first called."""

from __future__ import annotations

import subprocess
import sys

import pytest

from columnar.roles.lazy_methods import CLUSTER_METHODS, LazyHandlers
from columnar.thrift.cluster_methods import ClusterMethods


class Part:
    made = 0

    def __init__(self) -> None:
        Part.made += 1

    def columnarOne(self, ctx: object, number: int) -> tuple[object, int]:
        return ctx, number


def test_a_part_is_made_once_by_the_first_call() -> None:
    late = LazyHandlers(["columnarOne"], Part)
    handler = late.columnarOne
    assert Part.made == 0
    assert handler("ctx", 1) == ("ctx", 1)
    assert late.columnarOne("ctx", 2) == ("ctx", 2)
    assert Part.made == 1


def test_other_names_are_no_methods() -> None:
    with pytest.raises(AttributeError):
        _ = LazyHandlers(["columnarOne"], Part).get
    assert getattr(LazyHandlers(["columnarOne"], Part), "mutateRow", None) is None, "as a service asks"


def test_the_methods_about_servers_are_named_where_they_are_late() -> None:
    assert {name for name in vars(ClusterMethods) if name.startswith("columnar")} == CLUSTER_METHODS


def test_a_store_that_serves_has_not_loaded_them() -> None:
    script = "import sys, columnar.roles.store_process, columnar.roles.standalone; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    late = {
        "columnar.thrift.cluster_methods",
        "columnar.model.cluster_status_records",
    }
    assert not late & set(done.stdout.split())
