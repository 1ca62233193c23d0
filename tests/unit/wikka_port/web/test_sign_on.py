"""A proxy that signs people on is believed where the wiki was told to, and nobody else is."""

from __future__ import annotations

from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.tables import USERS, VISIT
from wikka_port.config import SignOnConfig


def test_a_proxy_signs_people_on_and_nobody_else_does() -> None:
    web = WikiClient(sign_on=SignOnConfig("X-Remote-User", ("192.0.2.1",)), proxies=1)
    by_proxy = {"headers": {"X-Remote-User": "Ada", "X-Forwarded-For": "203.0.113.9"}}
    seen = web.get("/-/pageindex", **by_proxy, environ_overrides={"REMOTE_ADDR": "192.0.2.1"})
    assert ">Ada</a>" in seen.text
    for lie in ({"X-Remote-User": "Ada"}, {"X-Remote-User": "Ada", "X-Forwarded-For": "192.0.2.1"}):
        answer = web.get("/-/pageindex", headers=lie, environ_overrides={"REMOTE_ADDR": "203.0.113.9"})
        assert 'class="me"' not in answer.text
    off = WikiClient()
    assert 'class="me"' not in off.get("/-/pageindex", headers={"X-Remote-User": "Ada"}).text


def test_who_comes_by_a_proxy_has_news_and_a_last_visit_too() -> None:
    web = WikiClient(MemoryWiki(start_ms=1_000_000_000), sign_on=SignOnConfig("X-Remote-User", ("192.0.2.1",)))
    web.wiki.save("Home", "A text.", author="Ann", base=0)

    def ada(path: str, **fields: str) -> str:
        given = {"headers": {"X-Remote-User": "Ada"}, "environ_overrides": {"REMOTE_ADDR": "192.0.2.1"}}
        if fields:
            csrf = web.form_of(web.get(path, **given))["csrf"]
            return web.client.post(path, data={"csrf": csrf, **fields}, **given).text
        return web.get(path, **given).text

    ada("/Home/watch", do="page")
    assert "You watch this page" in ada("/Home")
    web.now += 3_600
    web.wiki._now_ms = int(web.now * 1_000)
    web.save("/Home", "An edit.")
    text = ada("/Home")
    assert "1 new" in text
    assert "Changed since you were here last" in text
    assert web.wiki.rows.row(USERS, b"ada")[VISIT] == b"1000000000:%d" % (web.now * 1_000)
