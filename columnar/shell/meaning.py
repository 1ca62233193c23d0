"""(pure) Suggestions for an unknown name: the nearest known name, or two words in exchanged places."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

OF_OTHERS = {  # words of HBase's shell, of SQL and of file systems -> ours
    "list": "tables", "ls": "tables", "exists": "tables", "show": "tables", "desc": "describe",
    "select": "scan", "insert": "put", "update": "put", "set": "put", "read": "get",
    "deleteall": "delete", "delete-row": "delete", "del": "delete", "rm": "delete", "remove": "delete",
    "increment": "incr", "get-counter": "get", "check-and-set": "check-and-put", "cas": "check-and-put",
    "rmdir": "drop", "drop-table": "drop", "create-table": "create", "mk": "create", "serve": "standalone",
    "start": "standalone", "server": "standalone", "list-regions": "regions", "major-compact": "compact",
    "merge-region": "merge", "clone-snapshot": "snapshot", "restore": "restore-backup", "load": "bulk-load",
}  # fmt: skip


def nearest(word: str, known: Collection[str]) -> str | None:
    found = get_close_matches(word.lower().replace("_", "-"), known, 1, 0.6)
    return found[0] if found else None


def command_meant(words: list[str], known: Collection[str]) -> str | None:
    """Return the command that was meant; ``words`` are all typed words, of which the first is no command."""
    word = words[0].lower().replace("_", "-")
    if OF_OTHERS.get(word) in known:
        return OF_OTHERS[word]
    if len(words) > 1 and words[1] in known:  # the table, and then the command
        return " ".join([words[1], words[0], *words[2:]])
    return nearest(word, known)


def table_meant(given: Mapping[str, object], tables: Collection[str]) -> str | None:
    """Return the table that was meant; ``given`` has a command's arguments by their names."""
    table, row = given.get("table"), given.get("row")
    if isinstance(row, str) and row in tables:
        return f"the table comes first: did you mean '{row} {table}'?"
    near = nearest(table, tables) if isinstance(table, str) else None
    return f"did you mean '{near}'?" if near else None


def family_meant(given: Mapping[str, object], families: Collection[str]) -> str | None:
    row = given.get("row")
    if isinstance(row, str) and ":" in row and _family(row) in families:
        return f"the row comes before the columns: is '{row}' one of them?"
    named = [given.get(name) for name in ("columns", "cells", "column")]
    words = [word for one in named for word in (one if isinstance(one, tuple) else (one,)) if isinstance(word, str)]
    for word in words:
        if _family(word) not in families and (near := nearest(_family(word), families)):
            return f"did you mean '{near}'?"
    return None


def _family(column: str) -> str:
    return column.partition(":")[0]
