"""A wiki's folder from before accounts and rights is taken over where it is, and nothing in it differs afterwards."""

from __future__ import annotations

import hashlib
from pathlib import Path

from werkzeug.test import Client

from tests.support.older_wiki import unpacked
from tests.support.store_thread import StoreThread
from wikka_port.app import make_application
from wikka_port.config import WikiConfig
from wikka_port.consistency import check
from wikka_port.pages import Wiki


def test_the_older_folder_is_upgraded_in_place(tmp_path: Path) -> None:
    data, expected = unpacked(tmp_path)
    with StoreThread(data, trigger_modules=("wikka_port.triggers",)) as running:
        wiki = Wiki("127.0.0.1", running.port)
        wiki.prepare()
        assert wiki.settle("", 60)
        report = check(wiki)
        assert [found.text() for found in report.differences] == []
        assert wiki.names(limit=10_000) == list(expected)
        for name, revisions in expected.items():
            assert revisions_of(wiki, name) == [tuple(one) for one in revisions], name
        web = Client(make_application(wiki, WikiConfig(secret=b"s" * 32, edits_per_minute=0)))
        assert "Once more 3" in web.get("/Edited_3").text
        assert "Edited 11" in web.get("/-/search?q=text").text, "words that were in no index are found"
        assert web.get("/-/register").status_code == 200
        wiki.save("Edited 3", "By today's program.", author="Ann", base=4)
        wiki.save("A new page", "Links to [[Edited 3]].", author="Ann", base=0)
        assert wiki.settle("", 60)
        assert [found.text() for found in check(wiki).differences] == []
        wiki.store.close()


def revisions_of(wiki: Wiki, name: str) -> list[tuple[int, str, str, int, str]]:
    found = []
    for one in wiki.revisions(name, limit=1_000, bodies=True):
        assert one.body is not None
        found.append(
            (one.number, one.author, one.note, one.time_ms, hashlib.sha256(one.body.encode()).hexdigest()[:16])
        )
    return found
