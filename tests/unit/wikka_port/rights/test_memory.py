"""Rules and groups that a process holds: while other threads of it change rights, and at their bounds."""

from __future__ import annotations

from typing import Any

from tests.support.memory_rows import MemoryRows
from wikka_port.rights.rules import RULES_ROW, Privilege, rule_column
from wikka_port.rights.stored import GROUPS_MAX, RIGHTS_AGE_S, Group, GroupMemory, RulesMemory, StoredRights
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


def test_the_group_that_was_longest_not_looked_at_goes_first() -> None:
    memory = GroupMemory(lambda: 0.0)
    names = [f"Group {number}" for number in range(GROUPS_MAX)]
    memory.keep({name: Group(name.encode(), frozenset()) for name in names}, 0.0)
    memory.keep({names[0]: Group(b"read anew", frozenset())}, 0.0)
    assert names[1] in memory.young([names[1]])
    memory.keep({"one more": Group(b"1", frozenset()), "and one": Group(b"1", frozenset())}, 0.0)
    held = memory.young([*names, "one more", "and one"])
    assert [name for name in names if name not in held] == [names[2], names[3]]
    assert held[names[0]].head == b"read anew"
