"""Rows of SQL dumps, in pieces of any size, as different tools write them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sql_dumps import dump_of, pieces_of
from wikka_port.wikkawiki import sql_text
from wikka_port.wikkawiki.sql_dump import Row, SqlDump
from wikka_port.wikkawiki.sql_text import SqlDumpError

VALUES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.text(alphabet="ab'\"\\\n\r\t\0\x1a%_;()`-#/*, é", max_size=30).map(str.encode),
)
ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=6)


def rows_of(sql: bytes, size: int = 7) -> list[tuple[bytes | None, ...]]:
    return [row.values for row in SqlDump(pieces_of(sql, size))]


@given(rows=ROWS, size=st.integers(1, 40), style=st.integers(0, 31))
@settings(max_examples=150)
def test_any_rows_in_any_pieces_come_back(rows: list[tuple[bytes | None, ...]], size: int, style: int) -> None:
    sql = dump_of({"t": (("a", "b`c", "d"), rows)}, style)
    found = list(SqlDump(pieces_of(sql, size)))
    assert [row.values for row in found] == rows
    assert {row.columns for row in found} <= {("a", "b`c", "d")}


@given(data=st.binary(max_size=200), size=st.integers(1, 9))
@settings(max_examples=200)
def test_bytes_that_are_no_dump_are_refused_or_have_no_rows(data: bytes, size: int) -> None:
    with contextlib.suppress(SqlDumpError):
        list(SqlDump(pieces_of(b"INSERT INTO t (a) VALUES (" + data, size)))


MYSQLDUMP = rb"""/*M!999999\- enable the sandbox mode */
-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `w_pages`;
/*!40101 SET character_set_client = utf8 */;
CREATE TABLE `w_pages` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `tag` varchar(75) NOT NULL DEFAULT 'a,b(c',
  `latest` enum('Y','N') NOT NULL DEFAULT 'N', -- a note; (
  PRIMARY KEY (`id`,`tag`),
  KEY `idx` (`tag`(10)),
  FULLTEXT KEY `body` (`tag`)
) ENGINE=MyISAM DEFAULT CHARSET=utf8;
LOCK TABLES `w_pages` WRITE;
/*!40000 ALTER TABLE `w_pages` DISABLE KEYS */;
INSERT INTO `w_pages` VALUES (1,'It''s \'so\'','Y'),(2,'a;b -- no comment','N');
/*!40000 ALTER TABLE `w_pages` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET sql_mode = 'X' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50003 TRIGGER t BEFORE INSERT ON `w_pages` FOR EACH ROW BEGIN
  INSERT INTO `w_pages` VALUES (9,'no','N'); END */;;
DELIMITER ;
/*!50001 CREATE ALGORITHM=UNDEFINED VIEW `v` AS select 1 AS `INSERT INTO t` */;
-- Dump completed on 2026-11-01 12:00:00
"""


RESTORED = b"/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;\n/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;\n"


def of_old_mysql(version: bytes, end: bytes) -> bytes:
    return b"-- MySQL dump %s\n--\n-- Server version 4\nINSERT INTO t (a, b) VALUES (1,'a');\n%s" % (version, end)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_dumps_of_mysql_4_end_without_a_last_line(size: int) -> None:
    for version, end in ((b"10.9", RESTORED), (b"9.11", b""), (b"10.10", b"-- Dump completed on 2006-01-01\n")):
        assert rows_of(of_old_mysql(version, end), size) == [(b"1", b"a")], version
    for version, end in ((b"10.9", b""), (b"10.9", b"SET SQL_MODE=1;\n"), (b"10.10", RESTORED), (b"10.13", RESTORED)):
        with pytest.raises(SqlDumpError, match="cut off"):
            rows_of(of_old_mysql(version, end), size)


def test_mysqldump() -> None:
    dump = SqlDump(pieces_of(MYSQLDUMP, 13))
    assert list(dump) == [
        Row("w_pages", ("id", "tag", "latest"), (b"1", b"It's 'so'", b"Y")),
        Row("w_pages", ("id", "tag", "latest"), (b"2", b"a;b -- no comment", b"N")),
    ]
    assert dump.charset == "utf8mb4"


PHPMYADMIN = rb"""-- phpMyAdmin SQL Dump
-- version 5.2.1
SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";
START TRANSACTION;
/*!40101 SET NAMES latin1 */;
CREATE TABLE IF NOT EXISTS `db`.`p` (
  `a` int(11) NOT NULL,
  b text NOT NULL
) ENGINE=InnoDB;
INSERT INTO `db`.`p` (`a`, `b`) VALUES
(-1, 0x4a6f), # a note
(2.50, _binary 'x\0\Z\%'),
(1e-5, X'4A'), (NULL, b'1');
ALTER TABLE `p` ADD PRIMARY KEY (`a`);
COMMIT"""


def test_phpmyadmin_and_a_last_statement_without_an_end() -> None:
    with pytest.raises(SqlDumpError, match=r"line 15: the dump ends within a statement"):
        rows_of(PHPMYADMIN)
    dump = SqlDump(pieces_of(PHPMYADMIN + b";", 5))
    assert [row.values for row in dump] == [
        (b"-1", b"Jo"),
        (b"2.50", b"x\0\x1a\\%"),
        (b"1e-5", b"J"),
        (None, b"\0\0\0\0\0\0\0\1"),
    ]
    assert (dump.charset, dump.columns) == ("latin1", {"p": ("a", "b")})


ADMINER = b"""-- Adminer 4.8.1 MySQL 5.5.5 dump

SET NAMES utf8;
SET time_zone = '+00:00';
DROP TABLE IF EXISTS `t`;
CREATE TABLE `t` (`a` text, `b` text);

INSERT INTO `t` (`b`, `a`) VALUES
('1',\t'2'),
('3',\tNULL)
ON DUPLICATE KEY UPDATE `a` = VALUES(`a`);
REPLACE t VALUES ('x', "it's");

-- 2026-11-01 10:00:00
"""


@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_adminer(size: int) -> None:
    found = [(row.columns, row.values) for row in SqlDump(pieces_of(ADMINER, size))]
    assert found == [
        (("b", "a"), (b"1", b"2")),
        (("b", "a"), (b"3", None)),
        (("a", "b"), (b"x", b"it's")),
    ]


def test_rows_of_other_tables_are_passed_over() -> None:
    sql = dump_of({"one": (("a",), [(b"1",)]), "two": (("a",), [(b"';(",), (b"2",)])}, 0)
    assert [row.table for row in SqlDump(pieces_of(sql, 9), lambda table: table == "one")] == ["one"]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (MYSQLDUMP.partition(b"-- Dump completed")[0], "line 26: .*-- Dump completed.*cut off"),
        (MYSQLDUMP[:735], "line 17: the dump ends within a text"),
        (b"INSERT INTO t VALUES (1);", "line 1: .*before its CREATE TABLE"),
        (b"\n\nCREATE TABLE t (a int);\nINSERT INTO t VALUES (1,2);", "line 4: .* has 2 values and 1 columns"),
        (b"INSERT INTO t (a) VALUES (now());", "line 1: b'now' is no value"),
        (b"INSERT INTO t (a) SELECT 1;", "line 1: .* without VALUES"),
        (b"INSERT INTO t (a) VALUES (1) (2);", "line 1: after a row stands"),
        (b"SET NAMES gbk;", "line 1: .*'gbk'.*--default-character-set=utf8mb4"),
        (b"CREATE TABLE t (a int);CREATE TABLE t (a int);", "line 1: .* made twice"),
        (b"DELIMITER ;;\nCREATE", "line 1: the delimiter"),
        (b"INSERT INTO t (a) VALUES ('a\\", "line 1: the dump ends within a text"),
        (b"INSERT INTO t (a) VALUES (0xZZ);", "line 1: .* no digits"),
    ],
)
def test_what_is_damaged_or_cut_is_said_with_its_line(sql: bytes, said: str) -> None:
    with pytest.raises(SqlDumpError, match=said):
        rows_of(sql)


def test_a_row_over_the_bound_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_text, "ROW_BYTES_MAX", 10_000)
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        yield b"INSERT INTO t (a) VALUES ('"
        for _ in range(1_000):
            read += 1
            yield b"x" * 1_000

    with pytest.raises(SqlDumpError, match="more than 10,000 bytes"):
        list(SqlDump(pieces()))
    assert read < 20
