"""Levels of loggers that change while a process runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from columnar.runtime.log_lines import change_levels, levels_of_loggers, set_levels
from columnar.runtime.log_settings import LOGGERS, parse_changes


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = logging.root.level
    yield
    set_levels(logging.getLevelName(before), ())


def test_changes_are_added_to_the_levels_of_the_settings_and_default_takes_one_away() -> None:
    set_levels("WARNING", ["of.settings=error"])
    assert change_levels(["of.change=debug"]) == "root=warning of.change=debug of.settings=error"
    assert logging.getLogger("of.change.below").isEnabledFor(logging.DEBUG)
    assert change_levels(()) == "root=warning of.change=debug of.settings=error"
    assert change_levels(["of.settings=default", "of.change=info"]) == "root=warning of.change=info"
    assert levels_of_loggers() == {"of.change": "INFO"}


def test_a_reading_of_the_settings_ends_what_was_changed() -> None:
    set_levels("WARNING", ["of.settings=error"])
    assert change_levels(["root=debug", "of.settings=debug", "of.change=debug"]).startswith("root=debug ")
    set_levels("ERROR", ["of.settings=error"])
    assert change_levels(()) == "root=error of.settings=error"
    assert logging.getLogger("of.change").level == logging.NOTSET


def test_the_root_returns_to_the_level_of_the_settings() -> None:
    set_levels("WARNING", ())
    change_levels(["root=debug"])
    assert change_levels(["root=default"]) == "root=warning"


@pytest.mark.parametrize("change", ["loud", "of.change=loud", "=debug", "of change=debug", "of.change", "1=debug"])
def test_a_change_that_is_none_changes_nothing(change: str) -> None:
    before = change_levels(())
    with pytest.raises(ValueError, match=r"write for example columnar\.wire=debug, one of debug.*default"):
        change_levels(["of.change=debug", change])
    assert change_levels(()) == before


def test_the_loggers_with_a_level_of_their_own_are_bounded() -> None:
    held = {f"of.l{number}": "DEBUG" for number in range(LOGGERS)}
    assert parse_changes(["of.l0=info"], held)["of.l0"] == "INFO"
    with pytest.raises(ValueError, match=f"{LOGGERS} may"):
        parse_changes(["of.another=info"], held)
    assert "of.another" in parse_changes(["of.another=info", "of.l0=default"], held)


@pytest.mark.parametrize(
    "change",
    ["columnar.audit=warning", "columnar.wire.audit=default", "columnar=error", "root=warning", "columnar.wire=error"],
)
def test_the_audit_log_is_not_silenced_by_a_change(change: str) -> None:
    with pytest.raises(ValueError, match=r"would silence columnar\.audit"):
        parse_changes(["of.change=debug", change], {})
    assert parse_changes(["columnar.audit=info", "columnar=debug", "root=default", "columnar.flows=error"], {})
