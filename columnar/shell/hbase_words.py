"""(pure) What is typed in the words of HBase's shell, in ours: carried out, or answered with what to type.

``VERBS`` is the whole list: each verb with the form of ours that it becomes and the function that writes it.
``ANSWERS`` has the verbs for which Columnar has something else, or nothing (``hbase_hints``).

Invariants:
    W1. A call whose meaning ours would change is answered, never carried out: HBase's ``delete`` takes the newest
        version of a cell away, ours all of them.
    W2. Every option of a call is used, has no effect on answers (``CACHE``), or makes it an answer.

Knows nothing of which commands there are: ``known`` says so, and a verb whose command is not there is answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from columnar.shell import hbase_calls as calls
from columnar.shell.hbase_calls import Otherwise
from columnar.shell.hbase_grammar import Call, NotUnderstood, parse
from columnar.shell.hbase_hints import HINTS
from columnar.shell.lines import Statement, quoted

_ONLY_HBASE: Final = re.compile(r"status\s+['\"]|balancer\s+['\"]force\b")  # ours take no such argument
_BLANK: Final = re.compile(r"[ \t\n]")  # as in ``lines``


@dataclass(frozen=True, slots=True)
class Ours:
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(map(quoted, self.words))


@dataclass(frozen=True, slots=True)
class Answer:
    """Nothing is done; the text says what to type."""

    text: str


@dataclass(frozen=True, slots=True)
class Verb:
    form: str  # of ours
    write: Callable[[Call], Sequence[str]]


def in_our_words(statement: Statement, known: Collection[str]) -> Ours | Answer | None:
    """None: it is in our words, or in no shell's.  ``known``: the commands that there are."""
    verb = _BLANK.split(statement.text, maxsplit=1)[0]
    if verb in known and not statement.is_hbase and not _ONLY_HBASE.match(statement.text):
        return None
    if verb in ANSWERS:
        return Answer(f"in Columnar: {ANSWERS[verb]}")
    if verb not in VERBS:
        return None
    form = VERBS[verb].form
    if form.split()[0] not in known:
        return Answer(f"in Columnar: there is no '{form.split()[0]}' here; {_WITHOUT.get(verb, 'help lists what is')}")
    try:
        return Ours(tuple(VERBS[verb].write(parse(statement.text))))
    except NotUnderstood as error:
        return Answer(f"{error}; in Columnar: {form}")
    except Otherwise as error:
        return Answer(f"in Columnar: {error}")


VERBS: Final[Mapping[str, Verb]] = {
    # rows
    "scan": Verb("scan TABLE --start ROW --stop ROW --prefix P --columns C,C --filter TEXT --limit N", calls.scan),
    "get": Verb("get TABLE ROW COLUMN... --versions N --since TIME --until TIME", calls.get),
    "put": Verb("put TABLE ROW COLUMN=VALUE... --timestamp TIME", calls.put),
    "append": Verb("append TABLE ROW COLUMN=VALUE...", calls.append),
    "delete": Verb("delete TABLE ROW COLUMN...", calls.delete),
    "deleteall": Verb("delete TABLE ROW COLUMN..., delete-rows TABLE --prefix P", calls.deleteall),
    "count": Verb("count TABLE --prefix P", calls.count),
    "incr": Verb("incr TABLE ROW COLUMN AMOUNT", calls.incr),
    "get_counter": Verb("get TABLE ROW COLUMN --as counter", calls.get_counter),
    # tables
    "list": Verb("tables", calls.list_tables),
    "describe": Verb("describe TABLE", calls.words_with("describe")),
    "desc": Verb("describe TABLE", calls.words_with("describe")),
    "exists": Verb("describe TABLE", calls.words_with("describe")),
    "create": Verb("create TABLE FAMILY:KEY=VALUE,... --split ROW --splits-hex N", calls.create),
    "alter": Verb("alter TABLE --add FAMILY --change FAMILY:KEY=VALUE --drop FAMILY --set KEY=VALUE", calls.alter),
    "disable": Verb("disable TABLE", calls.words_with("disable")),
    "enable": Verb("enable TABLE", calls.words_with("enable")),
    "is_enabled": Verb("tables", calls.named_table("tables")),
    "is_disabled": Verb("tables", calls.named_table("tables")),
    "drop": Verb("drop TABLE", calls.words_with("drop")),
    "truncate": Verb("truncate TABLE", calls.words_with("truncate")),
    "truncate_preserve": Verb(
        "truncate TABLE --preserve-splits", calls.words_with("truncate", after=["--preserve-splits"])
    ),
    "status": Verb("status", calls.status),
    # namespaces
    "create_namespace": Verb("namespace create NAME KEY=VALUE...", calls.create_namespace),
    "alter_namespace": Verb("namespace alter NAME KEY=VALUE...", calls.alter_namespace),
    "describe_namespace": Verb("namespace describe NAME", calls.words_with("namespace", "describe")),
    "drop_namespace": Verb("namespace drop NAME", calls.words_with("namespace", "drop")),
    "list_namespace": Verb("namespace list", calls.words_with("namespace", "list", least=0, most=0)),
    "list_namespace_tables": Verb("namespace list NAME", calls.words_with("namespace", "list")),
    # regions
    "list_regions": Verb("regions TABLE", calls.words_with("regions")),
    "get_splits": Verb("regions TABLE", calls.words_with("regions")),
    "locate_region": Verb("where TABLE ROW", calls.words_with("where", least=2, most=2)),
    "split": Verb("split TABLE|REGION ROW", calls.words_with("split", most=2)),
    "merge_region": Verb("merge REGION OTHER", calls.merge),
    "flush": Verb("flush TABLE|REGION", calls.words_with("flush")),
    "compact": Verb("compact TABLE|REGION", calls.words_with("compact")),
    "major_compact": Verb("compact TABLE|REGION --major", calls.words_with("compact", after=["--major"])),
    "move": Verb("move REGION SERVER", calls.words_with("move", most=2)),
    "assign": Verb("assign REGION", calls.words_with("assign")),
    "unassign": Verb("unassign REGION", calls.words_with("unassign")),
    "balancer": Verb("balance", calls.balancer),  # bare it is our switch, whose answer names balance
    "balance_switch": Verb("balancer on|off", calls.balance_switch),
    "rit": Verb("transitions", calls.words_with("transitions", least=0, most=0)),
    # servers
    "decommission_regionservers": Verb("drain SERVER", calls.decommission),
    "recommission_regionserver": Verb("undrain SERVER", calls.recommission),
    "list_decommissioned_regionservers": Verb("servers", calls.words_with("servers", least=0, most=0)),
    "stop_regionserver": Verb("stop SERVER", calls.words_with("stop")),
    # snapshots
    "snapshot": Verb("snapshot take NAME TABLE", calls.snapshot),
    "list_snapshots": Verb("snapshot list", calls.words_with("snapshot", "list", least=0, most=0)),
    "clone_snapshot": Verb("snapshot clone NAME TABLE", calls.words_with("snapshot", "clone", least=2, most=2)),
    "restore_snapshot": Verb("snapshot restore NAME", calls.words_with("snapshot", "restore")),
    "delete_snapshot": Verb("snapshot delete NAME", calls.words_with("snapshot", "delete")),
}

_ONE_SERVER: Final = "one server has all regions: 'regions TABLE' shows them"
_WITHOUT: Final = dict.fromkeys(  # where the command of VERBS is not there
    ("locate_region", "move", "assign", "unassign", "balancer", "balance_switch"), _ONE_SERVER
)
ANSWERS: Final[Mapping[str, str]] = HINTS
