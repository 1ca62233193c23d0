"""A proxy that signs people on is believed where the wiki was told to, and nobody else is."""

from __future__ import annotations

from tests.support.wiki_client import WikiClient


def test_a_proxy_signs_people_on_and_nobody_else_does() -> None:
    web = WikiClient(sign_on_header="X-Remote-User", sign_on_from=("192.0.2.1",), proxies=1)
    by_proxy = {"headers": {"X-Remote-User": "Ada", "X-Forwarded-For": "203.0.113.9"}}
    seen = web.get("/-/pageindex", **by_proxy, environ_overrides={"REMOTE_ADDR": "192.0.2.1"})
    assert ">Ada</a>" in seen.text
    for lie in ({"X-Remote-User": "Ada"}, {"X-Remote-User": "Ada", "X-Forwarded-For": "192.0.2.1"}):
        answer = web.get("/-/pageindex", headers=lie, environ_overrides={"REMOTE_ADDR": "203.0.113.9"})
        assert 'class="me"' not in answer.text
    off = WikiClient()
    assert 'class="me"' not in off.get("/-/pageindex", headers={"X-Remote-User": "Ada"}).text
