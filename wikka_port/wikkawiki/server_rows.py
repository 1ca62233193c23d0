"""WikkaWiki's tables out of a running MySQL or MariaDB server, row by row.

The tables are read in one transaction, so that InnoDB's are of one moment; WikkaWiki's own MyISAM tables are read one
after the other.  Values come as bytes in UTF-8.  The password comes from a variable of the environment or a prompt; no
text of this module has it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from wikka_port.wikkawiki.source_database import Copy, Source, is_kind, opened
from wikka_port.wikkawiki.sql_dump import Row
from wikka_port.wikkawiki.stored_text import TextReader

PORT: Final = 3306
TIMEOUT_S: Final = 60


class ServerError(Exception):
    """The server cannot be read; ``str()`` says what to do."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    user: str
    database: str
    socket: str = ""  # a path; "": by the network
    password: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        """The address of the database, without the password."""
        return f"mysql://{self.user}@{self.socket or self.host}:{self.port}/{self.database}"


def parse_address(text: str) -> Server:
    """Parse mysql://USER@HOST[:PORT]/DATABASE[?socket=PATH].  Raises ServerError; a password in it is refused."""
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
    except ValueError:
        raise ServerError("the port is no number") from None
    if parts.password is not None:
        raise ServerError(
            "the address has a password in it, which others on this machine could see: leave it out, and give it in "
            "the variable WIKKA_MYSQL_PASSWORD or at the prompt"
        )
    database = unquote(parts.path.strip("/"))
    if parts.scheme not in ("mysql", "mariadb") or not parts.username or not database or "/" in database:
        raise ServerError(f"{text!r} is no address: write mysql://USER@HOST/DATABASE")
    socket = unquote(parts.query.removeprefix("socket=")) if parts.query.startswith("socket=") else ""
    return Server(parts.hostname or "127.0.0.1", port, unquote(parts.username), database, socket)


def copied_from(server: Server, path: Path, prefix: str | None = None) -> Source:
    """Copy the tables of a WikkaWiki into a new file at ``path``.  Raises ServerError and NoWikkaWiki."""
    try:
        import pymysql
        from pymysql import converters, cursors
    except ImportError:
        raise ServerError("PyMySQL is not installed: pip install 'columnar[mysql]', or give a dump") from None
    reader = TextReader(lambda: "utf8mb4")
    try:
        with closing(_connected(server)) as link:
            connection = pymysql.connect(
                user=server.user,
                password=server.password,
                database=server.database,
                charset="utf8mb4",
                use_unicode=False,
                conv=dict(converters.encoders),  # no decoders: every value is as the server writes it
                cursorclass=cursors.SSCursor,
                read_timeout=TIMEOUT_S,
                defer_connect=True,
            )
            connection.connect(link)
            with connection, Copy(path, reader.text) as copy:
                with connection.cursor() as cursor:
                    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                for table in _tables(connection):
                    for row in _rows(connection, table, copy):
                        copy.add(row)
    except OSError as error:
        raise ServerError(f"{server.address}: {error.strerror or error}; is it running there?") from None
    except pymysql.MySQLError as error:
        raise ServerError(f"{server.address}: {_said(error)}") from None
    return opened(path, prefix)


def _connected(server: Server) -> socket.socket:
    if not server.socket:
        return socket.create_connection((server.host, server.port), TIMEOUT_S)
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(TIMEOUT_S)
        link.connect(server.socket)
    except OSError:
        link.close()
        raise
    return link


def _tables(connection: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")
        names = [row[0].decode("utf-8", "replace") for row in cursor.fetchall()]
    return [name for name in names if is_kind(name)]


def _rows(connection: Any, table: str, copy: Copy) -> Iterator[Row]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM `{}`".format(table.replace("`", "``")))
        columns = tuple(_name(one[0]) for one in cursor.description)
        copy.make(table, columns)
        while (values := cursor.fetchone()) is not None:
            yield Row(table, columns, tuple(values))


def _name(column: str | bytes) -> str:
    return column.decode("utf-8", "replace") if isinstance(column, bytes) else column


def _said(error: Exception) -> str:
    """Return the server's message; it names the user, and never the password."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)
