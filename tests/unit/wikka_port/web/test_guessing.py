"""Links of mails and passwords cannot be guessed: each try counts, and a link of one kind is none of another."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.account_pages import PASSWORD, register
from tests.support.wiki_client import WikiClient
from tests.support.wiki_scene import Scene, fresh_token
from wikka_port.accounts.factory import NETWORK_BURST
from wikka_port.urls import site_path

FIELDS = {
    "confirm": {"token": "{}"},
    "reset": {"token": "{}", "password": PASSWORD},
    "register": {"administrator": "{}", "user": "Eve", "password": PASSWORD},
}


@pytest.mark.parametrize("handler", sorted(FIELDS))
def test_tokens_are_guessed_at_a_bounded_rate_and_never_found(handler: str) -> None:
    scene = Scene(password_memory_kib=8)
    csrf = fresh_token(scene.web, "/-/login")
    before = scene.state()
    statuses = []
    for number in range(NETWORK_BURST + 2):
        guess = f"{number:043d}"
        fields = {key: value.format(guess) for key, value in FIELDS[handler].items()}
        statuses.append(scene.web.post(site_path(handler), {**fields, "csrf": csrf}).status_code)
    assert statuses[0] == 403
    assert statuses[-1] in (403, 429), "confirm says no more than that it is refused"
    assert 200 not in statuses
    assert 303 not in statuses
    assert scene.state() == before


@pytest.mark.parametrize(
    ("kind", "handler"), [pair for pair in product(("confirm", "reset", "invitation"), FIELDS) if pair[0] != pair[1]]
)
def test_a_link_of_one_kind_opens_no_other_door(kind: str, handler: str) -> None:
    scene = Scene(password_memory_kib=8)
    account = scene.directory.account("Rita")
    assert account is not None
    token = {
        "confirm": scene.links.issue("confirm", account.row, f"{account.id} active rita@mail.example"),
        "reset": scene.accounts.registration.reset_link(account),
        "invitation": scene.links.issue("invitation"),
    }[kind]
    csrf = fresh_token(scene.web, "/-/login")
    before = scene.state()
    fields = {key: value.format(token) for key, value in FIELDS[handler].items()}
    assert scene.web.post(site_path(handler), {**fields, "csrf": csrf}).status_code == 403
    assert scene.state() == before, "it is not spent either"


def test_who_guesses_elsewhere_keeps_nobody_out_where_the_account_is_signed_in() -> None:
    web = WikiClient(edit_burst=100)
    register(web)

    def tried(address: str, password: str) -> int:
        visitor = web.other_visitor()
        given = {**visitor.form("/-/login"), "user": "Ada", "password": password}
        return visitor.post("/-/login", given, environ_overrides={"REMOTE_ADDR": address}).status_code

    assert tried("192.0.2.7", PASSWORD) == 303
    assert [tried(f"198.51.100.{n}", "a wrong password") for n in range(60)][-1] == 429
    assert tried("203.0.113.1", PASSWORD) == 429, "from there anybody may come"
    assert tried("192.0.2.7", PASSWORD) == 303
    guessed = 0
    for _ in range(6):
        guessed += [tried("192.0.2.7", "a wrong password") for _ in range(30)].count(403)
        web.now += 60
    assert 40 < guessed <= 56, "guesses are as slow there"
