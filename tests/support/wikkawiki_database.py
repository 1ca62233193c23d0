"""A WikkaWiki's database from a seed, in the schema of 1.2 or of 1.4.2: what tests import.

The same seed gives the same wiki in both.  ``tables`` is for ``sql_dumps.dump_of``; ``write_sqlite`` makes the file of
a wiki on SQLite.
"""

from __future__ import annotations

import html
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Literal

from tests.support.sql_dumps import Table

Version = Literal["1.2", "1.4.2"]
Row = tuple[bytes | None, ...]
_WORDS = [
    *("harbour", "Lighthouse", "tide", "==Heading==", "**bold**", '{{image url="a.png"}}', "[[HomePage home]]"),
    *("Größe", "naïve", "%%code%%", "\\n", "it's"),
]
_BEGIN = datetime(2009, 9, 1, 10, 0, 0)


@dataclass
class WikkaWiki:
    """Rows by kind, each in the order of the columns of its version."""

    version: Version
    pages: list[Row] = field(default_factory=list)
    acls: list[Row] = field(default_factory=list)
    users: list[Row] = field(default_factory=list)
    comments: list[Row] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        return self.version == "1.4.2"

    @property
    def columns(self) -> dict[str, Sequence[str]]:
        new = self.is_new
        lists = ("comment_read_acl", "comment_post_acl") if new else ("comment_acl",)
        user = ["name", "password", "email", "revisioncount", "changescount", "doubleclickedit", "signuptime"]
        user += ["show_comments", "status", "theme"]
        user += ["default_comment_display", "force_password_reset", "md5_password", "challenge"] if new else []
        page = ["id", "tag", *(["title"] if new else []), "time", "body", "owner", "user", "latest", "note"]
        page += [] if new else ["handler"]
        comment = ["id", "page_tag", "time", "comment", "user", *(["parent", "status", "deleted"] if new else [])]
        return {
            "pages": page,
            "acls": ["page_tag", "read_acl", "write_acl", *lists],
            "users": user,
            "comments": comment,
        }

    def tables(self, prefix: str = "wikka_") -> dict[str, Table]:
        return {prefix + kind: (columns, getattr(self, kind)) for kind, columns in self.columns.items()}

    def write_sqlite(self, path: Path, prefix: str = "wikka_") -> None:
        with sqlite3.connect(path) as made:
            for table, (columns, rows) in self.tables(prefix).items():
                listed = ", ".join(f'"{one}" {"INTEGER" if one == "id" else "TEXT"}' for one in columns)
                made.execute(f'CREATE TABLE "{table}" ({listed})')
                texts = [[value if value is None else value.decode() for value in row] for row in rows]
                made.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', texts)
        made.close()

    # --- rows ----------------------------------------------------------------------------------

    def add_page(
        self,
        tag: str,
        body: str,
        time: str,
        *,
        user: str = "127.0.0.1",
        owner: str = "",
        note: str = "",
        latest: bool = True,
    ) -> None:
        note = html.escape(note) if self.is_new else note
        values = {
            "id": str(len(self.pages) + 1),
            "tag": tag,
            "title": tag,
            "time": time,
            "body": body,
            "owner": owner,
            "user": user,
            "latest": "Y" if latest else "N",
            "note": note,
            "handler": "page",
        }
        self.pages.append(tuple(values[one].encode() for one in self.columns["pages"]))


def words(draw: Random, count: int) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(count)) + draw.choice(["", "\n", "\r\n", "\n\n  "])


def random_wiki(version: Version, seed: int, *, pages: int, revisions: int, users: int = 0) -> WikkaWiki:
    """Make a wiki with at least one revision of each page."""
    draw = Random(seed)
    made = WikkaWiki(version)
    names = [f"Page{number}Of{draw.choice('ABCDEFG')}" for number in range(pages)]
    people = [f"UserNumber{chr(65 + number % 26)}{number}" for number in range(users)] or ["AdaLovelace"]
    order = names + [draw.choice(names) for _ in range(revisions - pages)]
    last = {tag: number for number, tag in enumerate(order)}
    at = _BEGIN
    for number, tag in enumerate(order):
        at += timedelta(seconds=draw.choice([0, 1, 60, 4_000]))
        made.add_page(
            tag,
            words(draw, draw.randrange(60)),
            f"{at:%Y-%m-%d %H:%M:%S}",
            user=draw.choice([*people, "192.0.2.7", "host.example"]),
            owner=draw.choice([people[0], "", "(Public)", "(Nobody)"]),
            note=draw.choice(["", "a note", "AT&T <b>", "ä"]),
            latest=last[tag] == number,
        )
    return made
