"""(pure) Verbs of HBase's shell that ours has in another form or not at all, each with what to type instead.

``HINTS`` has every verb of HBase 2.6's shell that ``hbase_words`` does not carry out, so that no user of HBase is
answered with "no such command".  Verbs of one kind share a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_USERS: Final = "certificates say who may connect, and all who may do everything: docs/security.md"
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
    _USERS: ("whoami", "grant", "revoke", "user_permission", "list_security_capabilities"),
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
    "version": "status says the version",
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
