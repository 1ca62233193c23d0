"""(pure) Calls in the words of HBase's shell: translated to Columnar's commands, or answered with what to type.

``VERBS`` has each verb with the Columnar command that it becomes and the function that translates it.  ``ANSWERS`` has
the verbs for which Columnar has something different, or nothing.

Invariants:
    W1. A call whose meaning the Columnar command would change is answered, never carried out: HBase's ``delete``
        removes the newest version of a cell, Columnar's removes all versions.
    W2. Every option of a call is used, has no effect on answers (``CACHE``), or makes the call be answered.

Knows nothing of which commands exist: ``known`` has them, and a verb whose command is missing is answered.

``HINTS`` has every verb of HBase 2.6's shell that is not carried out here, so that no user of HBase is answered with
"no such command".  Verbs of one kind share a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from columnar.shell import hbase_calls as calls
from columnar.shell.hbase_calls import Otherwise
from columnar.shell.hbase_grammar import Call, NotUnderstood, parse
from columnar.shell.lines import Statement, quoted

_USERS: Final = "whoami says whether the store checks rights; docs/security.md has the rest"
_REPLICATION: Final = "nothing is replicated; backup, export and snapshot keep copies"
_BY_ITSELF: Final = "this goes on by itself, and nothing switches it"
_GROUPS: Final = "there are no groups of servers; drain SERVER keeps a server empty, move REGION SERVER names one"
_LABELS: Final = "cells have no visibility labels"
_SLOW: Final = "the page /requests shows the last slow requests; each is a log line, too, from --slow-ms on"
_DEAD: Final = "servers shows each server; a dead one is replaced by itself, and its log goes when it is read"
_CACHE: Final = "a cache needs no clearing: it holds what was read last, within a bound"
_CONFIG: Final = "settings are flags of standalone; restart SERVER starts a server with the program as it is now"
_SPACE: Final = "describe TABLE and status show sizes; there are no quotas of space"
_TABLES: Final = "tables shows each table and whether it is enabled"

_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    _USERS: ("list_security_capabilities",),
    _LABELS: ("add_labels", "list_labels", "set_auths", "get_auths", "clear_auths", "set_visibility"),
    _REPLICATION: (
        "add_peer",
        "remove_peer",
        "list_peers",
        "enable_peer",
        "disable_peer",
        "set_peer_namespaces",
        "append_peer_namespaces",
        "remove_peer_namespaces",
        "set_peer_exclude_namespaces",
        "append_peer_exclude_namespaces",
        "remove_peer_exclude_namespaces",
        "show_peer_tableCFs",
        "set_peer_tableCFs",
        "append_peer_tableCFs",
        "remove_peer_tableCFs",
        "set_peer_exclude_tableCFs",
        "append_peer_exclude_tableCFs",
        "remove_peer_exclude_tableCFs",
        "set_peer_replicate_all",
        "set_peer_serial",
        "set_peer_bandwidth",
        "get_peer_config",
        "list_peer_configs",
        "update_peer_config",
        "list_replicated_tables",
        "enable_table_replication",
        "disable_table_replication",
        "peer_modification_enabled",
        "peer_modification_switch",
        "transit_peer_sync_replication_state",
    ),
    _BY_ITSELF: (
        "abort_procedure",
        "list_procedures",
        "list_locks",
        "normalize",
        "normalizer_switch",
        "normalizer_enabled",
        "catalogjanitor_run",
        "catalogjanitor_switch",
        "catalogjanitor_enabled",
        "cleaner_chore_run",
        "cleaner_chore_switch",
        "cleaner_chore_enabled",
        "snapshot_cleanup_switch",
        "snapshot_cleanup_enabled",
        "compaction_switch",
        "clear_compaction_queues",
        "wal_roll",
        "hlog_roll",
        "wal_roll_all",
        "flush_master_store",
        "trace",
    ),
    _GROUPS: (
        "list_rsgroups",
        "get_rsgroup",
        "add_rsgroup",
        "remove_rsgroup",
        "rename_rsgroup",
        "balance_rsgroup",
        "move_servers_rsgroup",
        "move_tables_rsgroup",
        "move_namespaces_rsgroup",
        "move_servers_tables_rsgroup",
        "move_servers_namespaces_rsgroup",
        "get_server_rsgroup",
        "get_table_rsgroup",
        "get_namespace_rsgroup",
        "remove_servers_rsgroup",
        "show_rsgroup_config",
        "alter_rsgroup_config",
    ),
    _SLOW: ("get_slowlog_responses", "get_largelog_responses", "clear_slowlog_responses"),
    _DEAD: ("list_deadservers", "clear_deadservers", "list_unknownservers"),
    _CACHE: ("clear_block_cache",),
    _CONFIG: ("update_config", "update_all_config", "update_rsgroup_config"),
    _SPACE: ("list_quota_table_sizes", "list_quota_snapshots", "list_snapshot_sizes"),
    _TABLES: ("list_enabled_tables", "list_disabled_tables"),
}

HINTS: Final[Mapping[str, str]] = {
    **{verb: text for text, verbs in _KINDS.items() for verb in verbs},
    # servers and regions
    "get_balancer_decisions": "decisions shows what the master decided, and why",
    "get_balancer_rejections": "balance --dry-run says what would move, or why nothing does",
    "balancer_enabled": "balancer says whether it is on",
    "splitormerge_switch": "auto-split on|off; merges are asked for, one at a time: merge REGION OTHER",
    "splitormerge_enabled": "auto-split says whether it is on",
    "list_liveservers": "servers shows each server with its state",
    "regioninfo": "where TABLE ROW shows the region of a row, regions TABLE all of a table",
    "close_region": "unassign REGION closes a region until assign REGION",
    "compact_rs": "one table or region at a time: compact TABLE|REGION",
    "compaction_state": "compact TABLE|REGION returns when it is done; others go on by themselves",
    "stop_master": "the process that was started ends the store: SIGTERM to it, or Ctrl-C",
    "is_in_maintenance_mode": "there is no such mode; servers and transitions show what goes on",
    "zk_dump": "there is no ZooKeeper",
    "hbck_chore_run": "check reads everything and says what is wrong, repair mends it",
    # tables
    "show_filters": "--filter takes all filters of HBase's filter language: docs/filters.md",
    "table_help": "COMMAND --help shows examples",
    "get_table": "there are no variables; each command names its table",
    "processlist": "status counts what goes on",
    "disable_all": "one table at a time: disable TABLE",
    "enable_all": "one table at a time: enable TABLE",
    "drop_all": "one table at a time: drop TABLE",
    "alter_async": "alter returns when the last region has the change: alter TABLE --change FAMILY:KEY=VALUE",
    "alter_status": "alter returns when the last region has the change",
    "clone_table_schema": "describe OLD shows what create NEW is to be given",
    "change_sft": "there are no store files of HBase's to track",
    "change_sft_all": "there are no store files of HBase's to track",
    "set_quota": "alter TABLE --set THROTTLE=1000req/s,10MB/s",
    "list_quotas": "describe TABLE shows its THROTTLE",
    "enable_rpc_throttle": "a THROTTLE holds as long as the table has it: alter TABLE --set THROTTLE=",
    "disable_rpc_throttle": "a THROTTLE holds as long as the table has it: alter TABLE --set THROTTLE=",
    "enable_exceed_throttle_quota": "a THROTTLE is never exceeded",
    "disable_exceed_throttle_quota": "a THROTTLE is never exceeded",
    "delete_all_snapshot": "one at a time: snapshot delete NAME",
    "delete_table_snapshots": "one at a time: snapshot delete NAME",
    "list_table_snapshots": "snapshot list shows all, with their tables",
}


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
    """An answer to a call that is not carried out; the text says what to type."""

    text: str


@dataclass(frozen=True, slots=True)
class Verb:
    form: str  # of ours
    write: Callable[[Call], Sequence[str]]


def in_our_words(statement: Statement, known: Collection[str]) -> Ours | Answer | None:
    """Translate a statement, or answer it; return None if it is in Columnar's words or in no shell's.

    ``known`` has the existing commands.
    """
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
    # users
    "whoami": Verb("whoami", calls.words_with("whoami", least=0, most=0)),
    "grant": Verb("grant USER RIGHTS SCOPE", calls.words_with("grant", least=2, most=5)),
    "revoke": Verb("revoke USER RIGHTS SCOPE", calls.revoke),
    "user_permission": Verb("permissions TABLE", calls.user_permission),
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
    "balancer": Verb("balance", calls.balancer),  # without a word it is Columnar's switch, whose answer names balance
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
_WITHOUT: Final = dict.fromkeys(  # for verbs whose command of VERBS is missing
    ("locate_region", "move", "assign", "unassign", "balancer", "balance_switch"), _ONE_SERVER
)
ANSWERS: Final[Mapping[str, str]] = HINTS
