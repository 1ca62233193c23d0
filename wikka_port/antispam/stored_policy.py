"""The site's settings of antispam in the store, with the history of their changes (``kept_settings``).

    table ``site``, rows "antispam" and "antispam history"

Each judgement reads the settings, so a change counts at once in every process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import SITE
from wikka_port.antispam.policy import DEFAULT_POLICY, BadPolicy, Policy, pack_policy, policy_in
from wikka_port.kept_settings import CHANGED, HISTORY_MAX, KeptSettings, SettingsChanged

__all__ = ["CHANGED", "HISTORY_MAX", "PolicyChange", "StoredPolicy", "policy_history", "read_policy", "write_policy"]

_KEPT: Final = KeptSettings(
    table=SITE,
    row=b"antispam",
    value=b"settings:value",
    revision=b"settings:revision",
    history_row=b"antispam history",
    pack=pack_policy,
    parse=policy_in,
)


@dataclass(frozen=True, slots=True)
class PolicyChange:
    time_ms: int
    by: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    policy: Policy = DEFAULT_POLICY
    revision: str = ""  # of the last change; "": there was none


def read_policy(rows: Rows) -> StoredPolicy:
    """Return the settings.  Raises StoreUnavailable."""
    stored = _KEPT.read(rows)
    return StoredPolicy(stored.value, stored.revision)


def write_policy(rows: Rows, before: str, policy: Policy, *, by: str, now_ms: int) -> StoredPolicy:
    """Store the settings, if their last change is still ``before``.  Raises BadPolicy, StoreUnavailable."""
    try:
        stored = _KEPT.write(rows, before, policy, by=by, now_ms=now_ms)
    except SettingsChanged as changed:
        raise BadPolicy(str(changed)) from None
    return StoredPolicy(stored.value, stored.revision)


def policy_history(rows: Rows) -> list[PolicyChange]:
    """Return the changes, the newest first.  Raises StoreUnavailable."""
    return [PolicyChange(one.time_ms, one.by, one.value) for one in _KEPT.history(rows)]
