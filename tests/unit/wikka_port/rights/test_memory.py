"""Rules that a process holds, while other threads of it change rights."""

from __future__ import annotations

from typing import Any

from tests.support.memory_rows import MemoryRows
from wikka_port.rights.memory import RIGHTS_AGE_S, RulesMemory
from wikka_port.rights.rules import RULES_ROW, Privilege, rule_column
from wikka_port.rights.stored import StoredRights
from wikka_port.schema import PAGES


class ForgottenMeanwhile(RulesMemory):
    """Behind whatever it is asked, another thread makes it forget."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name in ("forget", "take"):
            return found
        forget = super().__getattribute__("forget")
        if not callable(found):
            forget()
            return found

        def asked(*given: Any) -> Any:
            answer = found(*given)
            forget()
            return answer

        return asked


def test_a_change_of_rights_lets_nobody_in_for_a_moment() -> None:
    now = [0.0]
    rows = MemoryRows(lambda what: None)
    rights = StoredRights(rows, lambda: now[0])
    rights.memory = ForgottenMeanwhile(lambda: now[0])
    rows.put(PAGES, RULES_ROW, {rule_column(Privilege.READ, "secret"): b"Mia"})
    for at in (0.0, 0.1, RIGHTS_AGE_S - 0.1, RIGHTS_AGE_S, 1.0):
        now[0] = at
        rights.rules()  # fills it
        assert not rights.rules().is_open, at
