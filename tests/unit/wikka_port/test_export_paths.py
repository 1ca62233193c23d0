"""Paths of an export: every name has one, no two meet on any disk, and the name follows from it."""

from __future__ import annotations

import re
from random import Random

from tests.support.exported_wiki import NAMES
from tests.support.seeds import seed
from wikka_port.exchange.paths import (
    ENDINGS,
    SEGMENT_BYTES,
    TakenPaths,
    file_path,
    folded_path,
    name_of,
    page_path,
)
from wikka_port.exchange.spool import spool_database
from wikka_port.names import InvalidName, normalise

SEED = seed(402)
PIECES = (
    *("A", "a", "B", "é", "e\u0301", "ß", "ss", "/", "//", ".", "..", " ", "~", "%", "%2F", "con", "AUX", "nul.", ":"),
    *("files", "Files", ".git", "git~1", ".md", ".wikka", ".png", "?", "*", '"', "|", "<", ">", "\\", "ﬁ", "日", "-"),
)
REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]')
DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def drawn_names(count: int) -> list[str]:
    draw = Random(SEED)
    found = dict.fromkeys(NAMES)
    while len(found) < count:
        try:
            found[normalise("".join(draw.choices(PIECES, k=draw.randrange(1, 7))))] = None
        except InvalidName:
            continue
    return list(found)


def test_examples_are_as_a_person_expects() -> None:
    assert page_path("Harbour/Pier") == "Harbour/Pier"
    assert page_path("CON") == "%43ON"
    assert page_path("Who?") == "Who%3F"
    assert page_path("A.md/B") == "A%2Emd/B"
    assert page_path("files/x") == "%66iles/x"
    assert page_path(".git/config") == "%2Egit/config"
    assert page_path("a//b") == "a/%/b"
    assert file_path("Harbour/Pier", "pier.png") == "files/Harbour/Pier/pier.png"
    assert file_path("A/x.png", "y.png") == "files/A/x%2Epng/y.png"


def test_every_segment_is_safe_and_short_and_the_name_follows_from_the_path() -> None:
    print("seed", SEED)
    for name in map(normalise, drawn_names(3_000)):
        path = page_path(name)
        for segment in path.split("/"):
            assert segment, name
            assert not REFUSED.search(segment), path
            assert not DEVICE.fullmatch(segment), path
            assert segment[0] not in ". ", path
            assert segment[-1] not in ". ", path
            assert len(segment.encode()) <= SEGMENT_BYTES + 8, path
        for markup, ending in ENDINGS.items():
            assert name_of(path + ending) == ((name, markup) if "%~" not in path else None)


def test_no_two_paths_meet_on_a_disk_without_case_and_none_is_anothers_folder() -> None:
    database = spool_database()
    paths = TakenPaths(database)
    paths.create_table()
    names = drawn_names(3_000)
    taken: dict[str, str] = {}
    for name in names:
        for path in (paths.path_for(name) + ".md", paths.path_for(name, "a.png"), paths.path_for(name, "A.png")):
            assert folded_path(path) not in taken, (name, path)
            taken[folded_path(path)] = path
    for path in taken:
        folders = path.split("/")
        assert not any("/".join(folders[:depth]) in taken for depth in range(1, len(folders))), path
    assert [paths.path_for(name) for name in names] == [paths.path_for(name) for name in names]
    assert len(taken) == 3 * len(names)
    database.close()
