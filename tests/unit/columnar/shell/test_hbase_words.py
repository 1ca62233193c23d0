"""What HBase's words become, and what is answered."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.cli import main
from columnar.limits import SHELL_NESTING
from columnar.shell.hbase_grammar import Call, NotUnderstood, parse
from columnar.shell.hbase_words import ANSWERS, VERBS, Answer, Ours, in_our_words
from columnar.shell.lines import statements_of, words_of
from columnar.shell.text import typed
from columnar.shell.values import Values

KNOWN = {*main.list_commands(None), "where", "move", "assign", "unassign", "balance", "balancer"}  # type: ignore[attr-defined]


# Commands with the name of a word of HBase's shell.  Such a command is what the word does when it is typed bare or with
# one argument (``drop 't'``), so it has to mean the same; all else goes through VERBS.
SAME_NAME = {
    "alter", "append", "assign", "compact", "count", "create", "describe", "disable", "drop", "enable", "flush", "get",
    "grant", "incr", "move", "put", "revoke", "scan", "split", "status", "truncate", "unassign", "version", "whoami",
}  # fmt: skip
# ... and those that do not: why a bare word may be ours all the same.
OTHER_MEANING = {
    "balancer": "bare it says how the switch is, and its answer names balance",
    "delete": "HBase's has a comma and at least three arguments, so it is never taken for ours",
    "snapshot": "HBase's has a comma and two arguments",
}
# Words of HBase 2.6's shell that are in neither VERBS nor ANSWERS: no command of ours may take one of them unnoticed.
OTHER_WORDS = {
    "add_labels", "alter_namespace", "append_peer_exclude_namespaces", "append_peer_namespaces",
    "catalogjanitor_enabled", "catalogjanitor_switch", "cleaner_chore_enabled", "cleaner_chore_switch",
    "clear_auths", "clear_block_cache", "clear_compaction_queues", "clear_deadservers", "clear_slowlog_responses",
    "close_region", "compact_rs", "compaction_state", "compaction_switch", "describe_namespace",
    "disable_exceed_throttle_quota", "disable_peer", "disable_rpc_throttle", "disable_table_replication",
    "enable_exceed_throttle_quota", "enable_peer", "enable_rpc_throttle", "flush_master_store", "get_auths",
    "get_balancer_decisions", "get_balancer_rejections", "get_largelog_responses", "get_namespace_rsgroup",
    "get_peer_config", "get_rsgroup", "get_server_rsgroup", "get_slowlog_responses", "get_table",
    "get_table_rsgroup", "hbck_chore_run", "is_in_maintenance_mode", "list_deadservers",
    "list_decommissioned_regionservers", "list_disabled_tables", "list_enabled_tables", "list_labels",
    "list_liveservers", "list_namespace", "list_peer_configs", "list_quota_snapshots", "list_quota_table_sizes",
    "list_rsgroups", "list_security_capabilities", "list_snapshot_sizes", "list_unknownservers",
    "normalizer_enabled", "normalizer_switch", "recommission_regionserver", "regioninfo", "remove_peer",
    "remove_rsgroup", "remove_servers_rsgroup", "set_auths", "set_visibility", "show_peer_tableCFs",
    "splitormerge_enabled", "splitormerge_switch", "stop_master", "trace", "truncate_region", "update_all_config",
    "update_config", "update_peer_config", "user_permission", "version", "wal_roll_all",
}  # fmt: skip


def test_no_command_takes_a_word_of_hbases_shell_unnoticed() -> None:
    """``exists 't'`` becomes ``describe`` until somebody makes a command ``exists``, which would take it over."""
    commands = set(main.list_commands(None))  # type: ignore[attr-defined]
    words = VERBS.keys() | ANSWERS.keys() | OTHER_WORDS
    assert commands & words == SAME_NAME | OTHER_MEANING.keys()
    for word in SAME_NAME & VERBS.keys():
        assert VERBS[word].form.split()[0] == word, f"{word} is a command of ours, and HBase's becomes another one"


@pytest.mark.parametrize("word", sorted(VERBS.keys() | ANSWERS.keys()))
def test_a_word_is_hbases_unless_a_command_is_named_so(word: str) -> None:
    commands = set(main.list_commands(None))  # type: ignore[attr-defined]
    assert (ours(f"{word} 't'") is None) == (word in commands and word != "status"), "HBase's status takes a text"


def ours(text: str, known: set[str] = KNOWN) -> Ours | Answer | None:
    (statement,), reader = statements_of(text)
    assert not reader.is_open
    return in_our_words(statement, known)


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ("scan 'pages', {LIMIT => 5}", "scan pages --limit 5"),
        ("scan 'pages', LIMIT => 5, CACHE => 100", "scan pages --limit 5"),
        ("scan 't', {STARTROW => 'a', STOPROW => 'b', REVERSED => true}", "scan t --start a --stop b --reversed"),
        ("scan 't', {COLUMNS => ['a:b', 'c'], ROWPREFIXFILTER => 'x'}", "scan t --prefix x --columns a:b,c"),
        ("scan 't', {COLUMN => 'a:x,y'}", r"scan t --columns 'a:x\x2Cy'"),
        ("scan 't', {TIMERANGE => [5, 9], VERSIONS => 3}", "scan t --since 5 --until 9 --versions 3"),
        (
            "scan 't', FILTER => \"PrefixFilter('a') AND PageFilter(3)\"",
            "scan t \"--filter=PrefixFilter('a') AND PageFilter(3)\"",
        ),
        ("get 't', 'r'", "get t r"),
        ("get 't', \"\\x00\\xff\"", r"get t '\x00\xFF'"),
        ("get 't', '\\x00'", r"get t '\x5Cx00'"),
        ("get 't', '-r', 'f:q', ['g', 'h:i']", r"get t '\x2Dr' f:q g h:i"),
        ("get 't', 'r', {COLUMN => 'f:q', TIMESTAMP => 5}", "get t r f:q --since 5 --until 6"),
        ("get 't', 'r', {FILTER => 'KeyOnlyFilter()'}", r"scan t --start r --stop 'r\x00' '--filter=KeyOnlyFilter()'"),
        ("put 't','r','f:q','v'", "put t r f:q=v"),
        ("put 't','r','f:q','it\\'s', 7", 'put t r "f:q=it\'s" --timestamp 7'),
        ("put 't','r','f:a=b',-5", r"put t r 'f:a\x3Db=\x2D5'"),
        ("put 't','r','f:q','@file'", r"put t r 'f:q=\x40file'"),
        ("append 't','r','f:q','v'", "append t r f:q=v"),
        ("deleteall 't','r'", "delete t r"),
        ("deleteall 't','r','f:q',9", "delete t r f:q --timestamp 9"),
        ("deleteall 't', {ROWPREFIXFILTER => 'p'}", "delete-rows t --prefix p"),
        ("count 't', INTERVAL => 1000", "count t"),
        ("incr 't','r','f:q',-5", "incr t r f:q -5"),
        ("get_counter 't','r','f:q'", "get t r f:q --as counter"),
        ("list", "tables"),
        ("desc 't'", "describe t"),
        ("exists 't'", "describe t"),
        ("is_enabled 't'", "tables"),
        ("create 't','f','g'", "create t f g"),
        ("create 't', {NAME=>'f', VERSIONS=>3, TTL=>'FOREVER'}, 'g'", "create t f:versions=3,ttl=FOREVER g"),
        ("create 't','f', SPLITS => ['a','b']", "create t f --split a --split b"),
        ("create 't','f', {NUMREGIONS => 15, SPLITALGO => 'HexStringSplit'}", "create t f --splits-hex 15"),
        (
            "create 't','f', {NUMREGIONS=>5, SPLITALGO=>'org.apache.hadoop.hbase.util.RegionSplitter$UniformSplit'}",
            "create t f --splits-uniform 5",
        ),
        ("create 't','f', SPLITS_FILE => '/tmp/a b.txt'", "create t f --splits-file '/tmp/a b.txt'"),
        ("create 't','f', {SPLITS_FILE => '-x'}", "create t f --splits-file ./-x"),
        ("create 't', {METHOD => 'table_att', MAX_FILESIZE => '5'}, {NAME => 'f'}", "create t f --set MAX_FILESIZE=5"),
        ("create 't', 'f', NORMALIZER_TARGET_REGION_COUNT => -1", "create t f --set NORMALIZER_TARGET_REGION_COUNT=-1"),
        ("alter 't', METHOD => 'table_conf_unset', NAME => 'a.b'", "alter t --set a.b="),
        ("alter 't', METHOD => 'table_att_unset', NAME => ['a.b', 'OWNER']", "alter t --set a.b= --set OWNER="),
        (
            "create 't','f', {NUMREGIONS => '4', SPLITALGO => 'DecimalStringSplit'}",
            "create t f --split 25000000 --split 50000000 --split 75000000",
        ),
        ("create 't','f', {MAX_FILESIZE => '134217728'}", "create t f --set MAX_FILESIZE=134217728"),
        ("alter 't', NAME => 'f', VERSIONS => 5", "alter t --family f:versions=5"),
        ("alter 't', 'f'", "alter t --family f"),
        ("alter 't', NAME => 'f'", "alter t --family f"),
        (
            "alter 't', 'f', {NAME => 'g', TTL => 5}, READONLY => true",
            "alter t --family f --family g:ttl=5 --set READONLY=true",
        ),
        ("alter 't', {NAME => 'f'}, {NAME => 'g', METHOD => 'delete'}", "alter t --family f --drop g"),
        ("alter 't', {READONLY => true}, 'f'", "alter t --set READONLY=true --family f"),
        (
            "create 't', {NAME => 'f', TTL => '86400 SECONDS (1 DAY)', BLOCKSIZE => '65536 B (64KB)', "
            "METADATA => {'mykey' => 'a,b', 'CACHE_DATA_ON_WRITE' => 'true'}, CONFIGURATION => {'hbase.x.y' => '2'}}",
            "create t 'f:ttl=86400 SECONDS (1 DAY),blocksize=65536 B (64KB),METADATA.mykey=a\\x2Cb,"
            "cache_data_on_write=true,hbase.x.y=2'",
        ),
        (
            "create 't', {TABLE_ATTRIBUTES => {MAX_FILESIZE => '10 GB', METADATA => {'hbase.x' => 'D', 'own' => 'v'}}}"
            ", {NAME => 'f'}, OWNER => 'me'",
            "create t f --set 'MAX_FILESIZE=10 GB' --set hbase.x=D --set METADATA.own=v --set OWNER=me",
        ),
        (
            "alter 't', MEMSTORE_FLUSHSIZE => 5, METADATA => {'k' => 'v'}",
            "alter t --set MEMSTORE_FLUSHSIZE=5 --set METADATA.k=v",
        ),
        ("alter 't', METHOD => 'table_att', MAX_FILESIZE => '1 GB'", "alter t --set 'MAX_FILESIZE=1 GB'"),
        ("create_namespace 'n', {'key' => 'v', 'KEY' => 5}", "namespace create n key=v KEY=5"),
        ("alter_namespace 'n', {METHOD => 'set', 'key' => 'v'}", "namespace alter n key=v"),
        ("alter_namespace 'n', METHOD => 'unset', NAME => 'key'", "namespace alter n key="),
        ("describe_namespace 'n'", "namespace describe n"),
        ("alter 't', 'delete' => 'f'", "alter t --drop f"),
        ("alter 't', {NAME => 'f', METHOD => 'delete'}", "alter t --drop f"),
        ("alter 't', READONLY => true", "alter t --set READONLY=true"),
        ("disable 't'", "disable t"),
        ("truncate_preserve 't'", "truncate t --preserve-splits"),
        ("status 'simple'", "status"),
        ("list_namespace", "namespace list"),
        ("list_namespace_tables 'n'", "namespace list n"),
        ("list_regions 't'", "regions t"),
        ("locate_region 't','r'", "where t r"),
        ("split 't','m'", "split t m"),
        ("merge_region 'a','b',true", "merge a b"),
        ("merge_region ['a','b']", "merge a b"),
        ("flush 't'", "flush t"),
        ("major_compact 't'", "compact t --major"),
        ("move 'abc','host'", "move abc host"),
        ("balance_switch true", "balancer on"),
        ("decommission_regionservers 's1', true", "drain s1"),
        ("decommission_regionservers ['s1'], 'true'", "drain s1"),
        ("recommission_regionserver 's1'", "undrain s1"),
        ("recommission_regionserver 's1', []", "undrain s1"),
        ("list_decommissioned_regionservers", "servers"),
        ("stop_regionserver 's1'", "stop s1"),
        ("rit", "transitions"),
        ("snapshot 't','s'", "snapshot take s t"),
        ("clone_snapshot 's','t'", "snapshot clone s t"),
        ("list_snapshots", "snapshot list"),
    ],
)
def test_a_call_in_our_words(call: str, written: str) -> None:
    found = ours(call)
    if found is None:  # a single quoted word means the same in both
        assert words_of(call) == words_of(written)
        return
    assert isinstance(found, Ours), found
    assert found.text == written
    assert words_of(found.text) == found.words


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("delete 't','r','f:q'", "all versions of a cell away, not the newest alone: delete t r f:q"),
        ("scan 't', {RAW => true}", "no raw scan"),
        ("scan 't', {LIMIT => 5, NOBODY => 1}", "NOBODY has no counterpart"),
        ("get 't','r','f:q:toInt'", "no formatter"),
        ("list 'a.*'", "no pattern"),
        ("status 'detailed'", "regions TABLE"),
        ("create 't','f', {METHOD => 'delete'}", "METHOD has no counterpart"),
        ("create 't','f', {NUMREGIONS => 5}", "SPLITALGO is"),
        ("alter 't', 'delete' => 'f', METHOD => 'x'", "alter --help"),
        ("merge_region 'a','b','c'", "two regions at a time"),
        ("list_security_capabilities", "docs/security.md"),
        ("user_permission 't.*x'", "there is no pattern"),
        ("scan 't', {LIMIT => 1 + 1}", "neither text in quotes"),
        ("scan 't', {LIMIT => x(1)}", "neither text in quotes"),
        ("put 't','r'", "put takes a table, a row, a column and a value; in Columnar: put TABLE ROW"),
        ("get 't','r',", "something is to follow the last comma"),
        ("scan 't', LIMIT => 99999999999999999999", "more than 64 bits"),
        ("balance_switch 5", "true or false"),
        ('balancer "force"', "balance balances now, and there is no force"),
        ("decommission_regionservers 's1'", "moves the regions away, too"),
        ("decommission_regionservers 's1', false", "as decommission_regionservers does with true: drain s1"),
        ("decommission_regionservers ['s1','a b'], true", "one server at a time: drain s1; drain 'a b'"),
        ("decommission_regionservers", "takes one server or a list, and then true or false; in Columnar: drain SERVER"),
        ("recommission_regionserver 's1', ['abc','def']", "undrain s1; move abc s1; move def s1"),
        ("recommission_regionserver", "takes a server, and then perhaps a list"),
        ("truncate 't', 'u'", "truncate takes 1 arguments"),
    ],
)
def test_what_is_answered(call: str, answer: str) -> None:
    (statement,) = statements_of(call + " 'x'" if call.endswith(",") else call)[0]
    if call.endswith(","):  # as a script's end leaves it
        with pytest.raises(NotUnderstood, match=answer):
            parse(call)
        return
    found = in_our_words(statement, KNOWN)
    assert isinstance(found, Answer), found
    assert answer in found.text


def test_our_own_words_are_left_alone() -> None:
    for text in (
        "scan 'pages'",
        "get pages HomePage",
        "snapshot list",
        "balancer",
        "balancer 'on'",
        "nonsense 'x'",
        "move a b",
    ):
        assert ours(text) is None


def test_verbs_of_a_cluster_are_answered_where_there_is_none() -> None:
    found = ours("locate_region 't','r'", {"regions", "tables"})
    assert found == Answer(
        "in Columnar: there is no 'where' here; one server has all regions: 'regions TABLE' shows them"
    )


def test_every_form_begins_with_a_command_of_ours() -> None:
    assert {verb.form.split()[0] for verb in VERBS.values()} <= KNOWN
    assert not VERBS.keys() & ANSWERS.keys()
    for name in ANSWERS:
        assert isinstance(ours(name), Answer)


def test_brackets_have_a_bound() -> None:
    parse("v " + "[" * SHELL_NESTING + "]" * SHELL_NESTING)
    with pytest.raises(NotUnderstood, match="nested"):
        parse("v " + "[" * 10_000)
    assert parse('v "\\x41\\n\\101", nil, false') == Call("v", (b"A\nA", None, False))


RUBY = {b'"': b'\\"', b"\\": b"\\\\", b"\n": b"\\n"}


def ruby(data: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" if byte > 126 or byte < 32 else _shown(byte) for byte in data) + '"'


def _shown(byte: int) -> str:
    character = bytes([byte])
    return RUBY.get(character, character).decode()


cells = st.binary(min_size=1, max_size=20)


@given(cells, cells, cells, st.binary(max_size=20))
def test_bytes_survive_the_translation(table: bytes, row: bytes, qualifier: bytes, value: bytes) -> None:
    column = b"f:" + qualifier
    (statement,), _ = statements_of(f"put {ruby(table)},{ruby(row)},{ruby(column)},{ruby(value)}")
    found = in_our_words(statement, KNOWN)
    if isinstance(found, Answer):
        assert "formatter" in found.text
        return
    assert isinstance(found, Ours)
    verb, its_table, its_row, cell = words_of(found.text)
    assert (verb, typed(its_table), typed(its_row)) == ("put", table, row)
    assert Values("text").cell(cell) == (column, value)


@given(st.text(alphabet="sca'\"\\,[]{}=>5 :"))
def test_any_text_is_understood_or_said_not_to_be(text: str) -> None:
    with suppress(NotUnderstood):
        assert isinstance(parse("scan " + text), Call)


def test_the_page_names_every_verb() -> None:
    page = (Path(__file__).parents[4] / "docs" / "shell.md").read_text()
    assert [verb for verb in VERBS if not re.search(rf"`{verb}\b|[`(]{verb} ", page)] == []
