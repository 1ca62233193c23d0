"""(pure) Translations of HBase's shell calls to Columnar's commands: one function for each form of call.

A function returns the words of one Columnar command, or raises ``Otherwise``, whose argument says what to type instead.
``hbase_words.VERBS`` lists the functions; ``hbase_words`` states their invariants (W1, W2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from columnar.model.attributes import FAMILY_ATTRIBUTES
from columnar.model.inert_attributes import FAMILY_INERT, TABLE_INERT, attribute_name, is_setting, name_from_hbase
from columnar.model.region_info import decimal_splits
from columnar.model.schema import ATTRIBUTES
from columnar.shell.hbase_grammar import Call, NotUnderstood, Value
from columnar.shell.lines import quoted
from columnar.shell.text import readable

_WITHOUT_EFFECT: Final = frozenset({"CACHE", "CACHE_BLOCKS", "MAX_RESULT_SIZE", "INTERVAL", "BATCH", "ALL_METRICS"})
_NESTED: Final = ("METADATA", "CONFIGURATION")  # hashes with further attributes
_FAMILY_KEYS: Final = (*FAMILY_ATTRIBUTES, *FAMILY_INERT)
_TABLE_KEYS: Final = (*ATTRIBUTES, *TABLE_INERT)
_COMMA: Final = "\\x2C"
_ROWS: Final = {"STARTROW": "--start", "STOPROW": "--stop", "ENDROW": "--stop", "ROWPREFIXFILTER": "--prefix"}
_SPLIT_CLASSES: Final = b"org.apache.hadoop.hbase.util.RegionSplitter$"
_OF_TABLE: Final = (b"table_att", b"table_conf")  # methods; a hash that holds one is about the table
_OF_TABLE_UNSET: Final = (b"table_att_unset", b"table_conf_unset")
_SPLIT_ALGORITHMS: Final = {b"HexStringSplit": "--splits-hex", b"UniformSplit": "--splits-uniform"}


class Otherwise(Exception):
    """Columnar's command does not do what the call says; the argument says what to type."""


# --- arguments ---------------------------------------------------------------------------------------


def _text(value: Value) -> str:
    """Return a value as Columnar's commands take it: non-text bytes as \\xNN, and a leading ``-`` as \\x2D."""
    if isinstance(value, bytes):
        shown = readable(value)
        return "\\x2D" + shown[1:] if shown.startswith("-") else shown
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return _text(str(value).encode())
    raise NotUnderstood("a text in quotes is expected")


def _number(value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, bytes) and value.isdigit():
        return value.decode()
    raise NotUnderstood("a number is expected")


def _texts(value: Value) -> list[str]:
    """Return the texts of a value that is one text or a list of texts."""
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_text(one) for one in value]
    return [_text(value)]


def _plain(call: Call, least: int, most: int) -> list[str]:
    """Return all arguments, of which none may be a hash or a list."""
    if not least <= len(call.arguments) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise NotUnderstood(f"{call.verb} takes {count} arguments")
    return [_text(value) for value in call.arguments]


def _parted(call: Call, texts: int) -> tuple[list[Value], dict[str, Value]]:
    """Return up to ``texts`` positional arguments, at least the table, and the options of all hashes."""
    given, options = _as_typed(call, texts)
    return given, {key: value for key, value in _options(options).items() if key not in _WITHOUT_EFFECT}


def _options(given: Mapping[str, Value]) -> dict[str, Value]:
    """Return a hash by the names of its options, which may be written in small letters."""
    return {attribute_name(key): value for key, value in given.items()}


def _as_typed(call: Call, texts: int) -> tuple[list[Value], dict[str, Value]]:
    given: list[Value] = []
    options: dict[str, Value] = {}
    for value in call.arguments:
        if isinstance(value, Mapping):
            options.update(value)
        elif options:
            raise NotUnderstood("options come last")
        else:
            given.append(value)
    if not 1 <= len(given) <= texts:
        raise NotUnderstood(f"{call.verb} takes a table and at most {texts - 1} more before its options")
    return given, options


def _column(text: str) -> str:
    """Return a column as it stands in a list or before a ``=``; HBase's formatters are not accepted."""
    if text.count(":") > 1 and text.rpartition(":")[2].startswith(("to", "c(")):
        raise Otherwise("columns take no formatter; --as counter shows values of 8 bytes as numbers, --as hex as hex")
    return text.replace(",", "\\x2C").replace("=", "\\x3D")


def _value(text: str) -> str:
    """Return a value that names no file (@FILE) and no standard input (-, which ``_text`` has written as \\x2D)."""
    return "\\x40" + text[1:] if text.startswith("@") else text


def _times(options: dict[str, Value]) -> list[str]:
    """Remove TIMESTAMP, TIMERANGE and VERSIONS from ``options``; return the words for them."""
    words: list[str] = []
    if "TIMESTAMP" in options:
        stamp = int(_number(options.pop("TIMESTAMP")))
        words += ["--since", str(stamp), "--until", str(stamp + 1)]
    if "TIMERANGE" in options:
        span = options.pop("TIMERANGE")
        if not isinstance(span, Sequence) or isinstance(span, bytes) or len(span) != 2:
            raise NotUnderstood("TIMERANGE is [FIRST, BEFORE]")
        words += ["--since", _number(span[0]), "--until", _number(span[1])]
    for name in ("VERSIONS", "MAXVERSIONS"):
        if name in options:
            words += ["--versions", _number(options.pop(name))]
    return words


def _nothing_left(options: Mapping[str, Value], form: str) -> None:
    if options:
        raise Otherwise(f"{', '.join(options)} has no counterpart; {form}")


# --- rows --------------------------------------------------------------------------------------------


def scan(call: Call) -> list[str]:
    given, options = _parted(call, 1)
    words = ["scan", _text(given[0])]
    for name, option in _ROWS.items():
        if name in options:
            words += [option, _text(options.pop(name))]
    for name in ("COLUMNS", "COLUMN"):
        if name in options:
            words += ["--columns", ",".join(_column(one) for one in _texts(options.pop(name)))]
    if "LIMIT" in options:
        words += ["--limit", _number(options.pop("LIMIT"))]
    if options.pop("REVERSED", False):
        words.append("--reversed")
    words += _times(options) + _filter(options)
    if options.pop("RAW", False):
        raise Otherwise("deleted cells are not kept, so there is no raw scan; --versions N shows older ones")
    _nothing_left(options, "scan --help shows the options")
    return words


def _filter(options: dict[str, Value]) -> list[str]:
    if "FILTER" not in options:
        return []
    text = options.pop("FILTER")
    if not isinstance(text, bytes):
        raise NotUnderstood("FILTER is a string of the filter language")
    return [f"--filter={text.decode('utf-8', 'surrogateescape')}"]


def get(call: Call) -> list[str]:
    given, options = _parted(call, 1_000)
    if len(given) < 2:
        raise NotUnderstood("get takes a table and a row")
    columns = [text for value in given[2:] for text in _texts(value)]
    for name in ("COLUMN", "COLUMNS"):
        if name in options:
            columns += _texts(options.pop(name))
    times = _times(options)
    row = _text(given[1])
    if "FILTER" in options:
        chosen = ["--columns", ",".join(map(_column, columns))] if columns else []
        words = ["scan", _text(given[0]), "--start", row, "--stop", row + "\\x00", *chosen, *times, *_filter(options)]
    else:
        words = ["get", _text(given[0]), row, *map(_unformatted, columns), *times]
    _nothing_left(options, "get --help shows the options")
    return words


def _unformatted(column: str) -> str:
    _column(column)
    return column


def put(call: Call) -> list[str]:
    given, options = _parted(call, 5)
    if len(given) < 4:
        raise NotUnderstood("put takes a table, a row, a column and a value")
    _nothing_left(options, "put --help shows the options")
    table, row, column, value = (_text(one) for one in given[:4])
    stamp = ["--timestamp", _number(given[4])] if len(given) == 5 else []
    return ["put", table, row, f"{_column(column)}={_value(value)}", *stamp]


def append(call: Call) -> list[str]:
    table, row, column, value = _plain(call, 4, 4)
    return ["append", table, row, f"{_column(column)}={_value(value)}"]


def delete(call: Call) -> list[str]:
    given, _ = _parted(call, 4)
    shown = [quoted(_text(one)) for one in given[:3]]
    raise Otherwise(
        f"a delete takes all versions of a cell away, not the newest alone: delete {' '.join(shown)}"
        "  (--timestamp TIME: only those that are not younger)"
    )


def deleteall(call: Call) -> list[str]:
    given, options = _parted(call, 4)
    if "ROWPREFIXFILTER" in options and len(given) == 1:
        words = ["delete-rows", _text(given[0]), "--prefix", _text(options.pop("ROWPREFIXFILTER"))]
    elif len(given) < 2:
        raise NotUnderstood("deleteall takes a table and a row")
    else:
        stamp = ["--timestamp", _number(given[3])] if len(given) == 4 else []
        words = ["delete", _text(given[0]), _text(given[1]), *(_text(one) for one in given[2:3]), *stamp]
    _nothing_left(options, "delete --help shows the options")
    return words


def count(call: Call) -> list[str]:
    given, options = _parted(call, 2)  # the second is INTERVAL
    prefix = ["--prefix", _text(options.pop("ROWPREFIXFILTER"))] if "ROWPREFIXFILTER" in options else []
    _nothing_left(options, "count --help shows the options")
    return ["count", _text(given[0]), *prefix]


def incr(call: Call) -> list[str]:
    table, row, column, *amount = _plain(call, 3, 4)
    return ["incr", table, row, column, *(one.replace("\\x2D", "-") for one in amount)]


def get_counter(call: Call) -> list[str]:
    return ["get", *_plain(call, 3, 3), "--as", "counter"]


# --- tables ------------------------------------------------------------------------------------------


def create(call: Call) -> list[str]:
    if not call.arguments:
        raise NotUnderstood("create takes a table and its families")
    words = ["create", _text(call.arguments[0])]
    options: dict[str, Value] = {}
    for value in call.arguments[1:]:
        if not isinstance(value, Mapping):
            words.append(_text(value))
        elif "NAME" in (named := _options(value)):
            words.append(_family(named))
        else:
            options.update(named)
    if options.get("METHOD") in _OF_TABLE:  # as HBase 0.9x describes a table
        del options["METHOD"]
    words += _table_attributes(options)
    for row in _texts(options.pop("SPLITS", [])):
        words += ["--split", row]
    if "SPLITS_FILE" in options:
        words += ["--splits-file", _path(options.pop("SPLITS_FILE"))]
    if "NUMREGIONS" in options:
        words += _presplit(_bytes(options.pop("SPLITALGO", b"")), _number(options.pop("NUMREGIONS")))
    _nothing_left(options, "create --help shows the options")
    return words


def _presplit(algorithm: bytes, regions: str) -> list[str]:
    algorithm = algorithm.removeprefix(_SPLIT_CLASSES)
    if algorithm == b"DecimalStringSplit":
        return [word for row in decimal_splits(int(regions)) for word in ("--split", row.decode())]
    option = _SPLIT_ALGORITHMS.get(algorithm)
    if option is None:
        raise Otherwise(
            "SPLITALGO is DecimalStringSplit, HexStringSplit (--splits-hex N) or UniformSplit (--splits-uniform N)"
        )
    return [option, regions]


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise NotUnderstood("a text in quotes is expected")
    return value


def _path(value: Value) -> str:
    """Return the name of a file, changed only if it would read as an option."""
    path = _bytes(value).decode("utf-8", "surrogateescape")
    return "./" + path if path.startswith("-") else path


def _family(given: Mapping[str, Value]) -> str:
    """Return a family as ``name:versions=3``; Columnar's command says which attributes exist."""
    attributes = _attributes({key: value for key, value in given.items() if key != "NAME"}, _FAMILY_KEYS)
    written = ",".join(
        f"{key if is_setting(key) else key.lower()}={readable(text.encode()).replace(',', _COMMA)}"
        for key, text in attributes.items()
    )
    return _text(given["NAME"]) + (f":{written}" if written else "")


def _attributes(given: Mapping[str, Value], known: Collection[str]) -> dict[str, str]:
    """Return attributes by Columnar's names; a nested hash adds its own attributes."""
    found: dict[str, str] = {}
    for key, value in given.items():
        if key in _NESTED:
            if not isinstance(value, Mapping):
                raise NotUnderstood(f"{key} is a hash: {key} => {{'name' => 'value'}}")
            found |= {name_from_hbase(name, known): _attribute_text(one) for name, one in value.items()}
        else:
            found[attribute_name(key)] = _attribute_text(value)
    return found


def _attribute_text(value: Value) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(value)


def _table_attributes(options: dict[str, Value]) -> list[str]:
    """Remove a table's attributes from ``options``; return the words for them.

    HBase's ``describe`` writes the attributes as one hash.
    """
    described = options.pop("TABLE_ATTRIBUTES", {})
    if not isinstance(described, Mapping):
        raise NotUnderstood("TABLE_ATTRIBUTES is a hash")
    given = {**_options(described), **{key: options.pop(key) for key in list(options) if _is_of_table(key)}}
    return [word for key, text in _attributes(given, _TABLE_KEYS).items() for word in ("--set", f"{key}={text}")]


def _is_of_table(key: str) -> bool:
    return key in _TABLE_KEYS or key in _NESTED or is_setting(key)


def alter(call: Call) -> list[str]:
    if not call.arguments or isinstance(call.arguments[0], Mapping):
        raise NotUnderstood("alter takes a table and its changes")
    words, changes = ["alter", _text(call.arguments[0])], call.arguments[1:]
    if not changes:
        raise Otherwise("alter --help shows the options")
    for value in changes:
        words += _alteration(_options(value)) if isinstance(value, Mapping) else ["--family", _text(value)]
    return words


def _alteration(given: Mapping[str, Value]) -> list[str]:
    if given.keys() == {"DELETE"}:
        return ["--drop", _text(given["DELETE"])]
    method = _bytes(given.get("METHOD", b""))
    rest = {key: one for key, one in given.items() if key != "METHOD" and key not in _WITHOUT_EFFECT}
    if method == b"delete" and rest.keys() == {"NAME"}:
        return ["--drop", _text(rest["NAME"])]
    if method in _OF_TABLE_UNSET and rest.keys() == {"NAME"}:
        return [word for name in _texts(rest["NAME"]) for word in ("--set", f"{name}=")]
    if "NAME" in rest and not method:
        return ["--family", _family(rest)]
    if rest and "NAME" not in rest and (not method or method in _OF_TABLE) and all(map(_is_of_table, rest)):
        return _table_attributes(rest)
    raise Otherwise("alter --help shows the options")


# --- namespaces --------------------------------------------------------------------------------------


def create_namespace(call: Call) -> list[str]:
    given, options = _as_typed(call, 1)
    return ["namespace", "create", _text(given[0]), *(f"{key}={_attribute_text(one)}" for key, one in options.items())]


def alter_namespace(call: Call) -> list[str]:
    given, options = _as_typed(call, 1)
    method = _bytes(options.pop("METHOD", b"")).lower()
    words = ["namespace", "alter", _text(given[0])]
    if method == b"set" and options:
        return [*words, *(f"{key}={_attribute_text(one)}" for key, one in options.items())]
    if method == b"unset" and options.keys() == {"NAME"}:
        return [*words, f"{_attribute_text(options['NAME'])}="]
    raise NotUnderstood("alter_namespace takes METHOD => 'set' with pairs, or METHOD => 'unset' with a NAME")


# --- users -------------------------------------------------------------------------------------------


def revoke(call: Call) -> list[str]:
    """HBase's ``revoke`` names no rights: all rights at the scope are revoked."""
    grantee, *scope = _plain(call, 1, 4)
    return ["revoke", grantee, "RWXCA", *scope]


def user_permission(call: Call) -> list[str]:
    name = "".join(_plain(call, 0, 1))
    if "*" in name.removesuffix(".*"):
        raise Otherwise("permissions lists all grants, permissions TABLE those of a table; there is no pattern")
    return ["permissions", *([name] if name not in ("", ".*") else [])]


# --- lists -------------------------------------------------------------------------------------------


def list_tables(call: Call) -> list[str]:
    if call.arguments:
        raise Otherwise("tables lists all of them; there is no pattern")
    return ["tables"]


def status(call: Call) -> list[str]:
    if call.arguments and call.arguments[0] not in (b"summary", b"simple"):
        raise Otherwise("status, tables, and regions TABLE for more")
    return ["status"]


def words_with(*before: str, least: int = 1, most: int = 1, after: Sequence[str] = ()) -> Callable[[Call], list[str]]:
    """Return a translation that gives Columnar's words, then the arguments as they are."""
    return lambda call: [*before, *_plain(call, least, most), *after]


# --- regions, servers and snapshots ------------------------------------------------------------------


def merge(call: Call) -> list[str]:
    names = [text for value in call.arguments if not isinstance(value, bool) for text in _texts(value)]
    if len(names) != 2:
        raise Otherwise("two regions at a time: merge REGION OTHER")
    return ["merge", *names]


def snapshot(call: Call) -> list[str]:
    table, name = _plain(call, 2, 2)
    return ["snapshot", "take", name, table]


def balancer(call: Call) -> list[str]:
    if call.arguments:
        raise Otherwise("balance balances now, and there is no force")
    return ["balance"]


def decommission(call: Call) -> list[str]:
    """Translate a call that says true; without true HBase leaves the regions at the server, and a drain does not."""
    if not 1 <= len(call.arguments) <= 2 or not (names := _texts(call.arguments[0])):
        raise NotUnderstood(f"{call.verb} takes one server or a list, and then true or false")
    shown = "; ".join(f"drain {quoted(name)}" for name in names)
    if call.arguments[1:] not in ((True,), (b"true",)):
        raise Otherwise(f"a drain moves the regions away, too, as {call.verb} does with true: {shown}")
    if len(names) > 1:
        raise Otherwise(f"one server at a time: {shown}")
    return ["drain", *names]


def recommission(call: Call) -> list[str]:
    if not 1 <= len(call.arguments) <= 2:
        raise NotUnderstood(f"{call.verb} takes a server, and then perhaps a list of regions")
    name = _text(call.arguments[0])
    if regions := [region for value in call.arguments[1:] for region in _texts(value)]:
        moves = "; ".join(f"move {quoted(region)} {quoted(name)}" for region in regions)
        raise Otherwise(f"regions move one by one: undrain {quoted(name)}; {moves}")
    return ["undrain", name]


def balance_switch(call: Call) -> list[str]:
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], bool):
        raise NotUnderstood("balance_switch takes true or false")
    return ["balancer", "on" if call.arguments[0] else "off"]


def named_table(*words: str) -> Callable[[Call], list[str]]:
    """Return a translation that gives Columnar's words alone, for a call that names a table."""

    def written(call: Call) -> list[str]:
        _plain(call, 1, 1)
        return list(words)

    return written
