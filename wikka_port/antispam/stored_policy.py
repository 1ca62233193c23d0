"""The site's settings of antispam in the store, with the history of their changes.

    table ``site``, row "antispam"            settings:value      the settings (``policy``)
                                              settings:revision   "N:token" of the last change
                    row "antispam history"    settings:NUMBER     a change, by its number (10 digits, inverted):
                                              JSON with ``time`` (ms), ``by`` and ``value``; the newest HISTORY_MAX

A change of the settings is one step, on the condition that nobody else changed them; the history follows.  A crash in
between leaves a change that the history lacks.  Each judgement reads the settings, so a change counts at once in every
process.

While a folder is not prepared for this version, the defaults count.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import SITE
from wikka_port.antispam.policy import DEFAULT_POLICY, BadPolicy, Policy, pack_policy, policy_in
from wikka_port.rights.rules import next_revision, number_of
from wikka_port.store import NotPrepared
from wikka_port.texts import N_, _

ROW: Final = b"antispam"
HISTORY_ROW: Final = b"antispam history"
VALUE: Final = b"settings:value"
REVISION: Final = b"settings:revision"
HISTORY_MAX: Final = 100
_NUMBER_MAX: Final = 10**10 - 1
CHANGED: Final = N_("Somebody else changed these settings meanwhile. Please look at them again.")


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
    try:
        cells = rows.row(SITE, ROW, [VALUE, REVISION])
    except NotPrepared:
        return StoredPolicy()
    return StoredPolicy(policy_in(cells.get(VALUE, b"")), cells.get(REVISION, b"").decode(errors="replace"))


def write_policy(rows: Rows, before: str, policy: Policy, *, by: str, now_ms: int) -> StoredPolicy:
    """Store the settings, if their last change is still ``before``.  Raises BadPolicy, StoreUnavailable."""
    revision = next_revision(before.encode("utf-8", "replace"), secrets.token_hex(8))
    value = pack_policy(policy)
    if not rows.change(SITE, ROW, {REVISION: before.encode() or None}, {REVISION: revision, VALUE: value}):
        raise BadPolicy(_(CHANGED))
    number = number_of(revision)
    entry = {"time": now_ms, "by": by, "value": json.loads(value)}
    rows.put(SITE, HISTORY_ROW, {_column(number): json.dumps(entry, ensure_ascii=False).encode()})
    if number > HISTORY_MAX:
        rows.delete(SITE, HISTORY_ROW, [_column(number - HISTORY_MAX)])
    return StoredPolicy(policy, revision.decode())


def policy_history(rows: Rows) -> list[PolicyChange]:
    """Return the changes, the newest first.  Raises StoreUnavailable."""
    found = []
    for _column_name, cell in sorted(rows.row(SITE, HISTORY_ROW).items()):
        try:
            entry = json.loads(cell)
            policy = policy_in(json.dumps(entry["value"]).encode())
            found.append(PolicyChange(int(entry["time"]), str(entry["by"]), policy))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _column(number: int) -> bytes:
    return b"settings:%010d" % (_NUMBER_MAX - number)
