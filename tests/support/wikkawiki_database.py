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
from hashlib import md5
from pathlib import Path
from random import Random
from typing import Literal

import bcrypt

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

    def add_acl(self, tag: str, read: str, write: str, comment_read: str = "*", comment_post: str = "+") -> None:
        lists = [read, write, comment_read, comment_post] if self.is_new else [read, write, comment_post]
        stored = [html.escape(one) if self.is_new else one for one in lists]
        self.acls.append(tuple(one.encode() for one in (tag, *stored)))

    def add_user(
        self,
        name: str,
        password: str,
        email: str = "",
        *,
        kind: Literal["md5", "bcrypt"] = "md5",
        challenge: str = "5f3a09c1",
        **given: str,
    ) -> None:
        """Add a user whose password is hashed as the version does; 1.4.2 keeps MD5 of users from before."""
        typed = with_entities(password) if self.is_new else password
        digest = md5(((challenge if self.is_new else "") + typed).encode()).hexdigest()
        by_bcrypt = bcrypt.hashpw(typed.encode(), bcrypt.gensalt(4)).replace(b"$2b$", b"$2y$", 1).decode()
        values = {
            "name": name,
            "password": by_bcrypt if kind == "bcrypt" else "" if self.is_new else digest,
            "email": email,
            "revisioncount": "20",
            "changescount": "50",
            "doubleclickedit": "Y",
            "signuptime": "2010-03-04 05:06:07",
            "show_comments": "N",
            "theme": "light",
            "default_comment_display": "3",
            "force_password_reset": "0",
            "md5_password": digest if kind == "md5" and self.is_new else "",
            "challenge": challenge if kind == "md5" else "",
            **given,
        }
        self.users.append(tuple(values[one].encode() if one in values else None for one in self.columns["users"]))

    def add_comment(
        self, tag: str, text: str, time: str, *, user: str = "host.example", parent: int = 0, status: str = ""
    ) -> int:
        """Add a comment as WikkaWiki stores it: with entities, and a break before each line end.  Return its id."""
        stored = html.escape(text, quote=False).replace('"', "&quot;").replace("\n", "<br />\n")
        values = {"id": str(len(self.comments) + 1), "page_tag": tag, "time": time, "comment": stored, "user": user}
        values |= {key: value for key, value in (("parent", str(parent or "")), ("status", status)) if value}
        self.comments.append(tuple(values[one].encode() if one in values else None for one in self.columns["comments"]))
        return len(self.comments)


def with_entities(text: str) -> str:
    """Escape as PHP's htmlspecialchars does with ENT_COMPAT, which is enough for texts without entities."""
    return html.escape(text, quote=False).replace('"', "&quot;")


def words(draw: Random, count: int) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(count)) + draw.choice(["", "\n", "\r\n", "\n\n  "])


def random_wiki(version: Version, seed: int, *, pages: int, revisions: int, users: int = 0) -> WikkaWiki:
    """Make a wiki with at least one revision of each page."""
    draw = Random(seed)
    made = WikkaWiki(version)
    names = [f"Page{number}Of{draw.choice('ABCDEFG')}" for number in range(pages)]
    people = [f"UserNumber{chr(65 + number % 26)}{number}" for number in range(users)] or ["AdaLovelace"]
    for number in range(users):
        kind: Literal["md5", "bcrypt"] = "bcrypt" if made.is_new and number % 2 else "md5"
        made.add_user(people[number], f"pass&<{number}>ä", f"user{number}@example.org", kind=kind)
    for tag in names[::7]:
        made.add_acl(tag, draw.choice(["*", "+", "!*", people[0]]), draw.choice(["+", f"!{people[0]}\n+"]))
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
