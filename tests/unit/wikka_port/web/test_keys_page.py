"""The page of keys: a new key needs the password, its token is shown once, and each key ends by its own button."""

from __future__ import annotations

import re

import pytest

from tests.support.account_pages import PASSWORD
from tests.support.api_client import ApiClient, ApiScene
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.api_keys import KEYS_MAX
from wikka_port.accounts.tables import USERS, user_row


@pytest.fixture
def scene() -> ApiScene:
    return ApiScene()


@pytest.fixture
def rita(scene: ApiScene) -> WikiClient:
    account = scene.accounts.directory.account("Rita")
    assert account is not None
    cookie = scene.accounts.sessions.begin(account, network="192.0.2.0", agent="a test")
    assert cookie is not None
    browser = scene.web.other_visitor()
    browser.client.set_cookie("wikka_session", cookie)
    return browser


def make(browser: WikiClient, **fields: str) -> tuple[int, str]:
    """Send the form for a new key; return the status and the token, "" if none was made."""
    form = {"label": "a report", "scope_read": "1", "days": "30", "current": PASSWORD, **fields}
    given = {**browser.form("/-/keys"), **form}
    answer = browser.post("/-/keys", {key: value for key, value in given.items() if value and key != "end"})
    found = re.search(r'value="(wk_[^"]+)"', answer.text)
    return answer.status_code, found[1] if found else ""


def test_a_key_is_made_used_listed_and_ended(scene: ApiScene, rita: WikiClient) -> None:
    status, token = make(rita, scope_write="1")
    assert status == 200
    program = ApiClient(scene.web.client, token)
    assert program.get("/me").json == {"name": "Rita", "scopes": ["read", "write"], "administrator": False}
    listed = rita.get("/-/keys").text
    assert "a report" in listed
    assert token not in listed
    assert token.rpartition(".")[2].encode() not in b"".join(scene.accounts.rows.row(USERS, user_row("Rita")).values())
    key = re.search(r'name="end" value="(\w+)"', listed)
    assert key is not None
    rita.post("/-/keys", {**rita.form("/-/keys"), "end": key[1]})
    assert program.get("/me").status_code == 401
    assert "a report" not in rita.get("/-/keys").text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"current": "wrong"}, 403),
        ({"current": ""}, 403),
        ({"scope_read": ""}, 400),
        ({"days": "0"}, 400),
        ({"days": "9999"}, 400),
        ({"days": "x"}, 400),
        ({"csrf": "0.0"}, 403),
    ],
)
def test_what_makes_no_key(scene: ApiScene, rita: WikiClient, fields: dict[str, str], status: int) -> None:
    assert make(rita, **fields) == (status, "")
    assert scene.accounts.keys.of(user_row("Rita")) == []


def test_keys_have_a_bound_and_expired_ones_make_room(scene: ApiScene, rita: WikiClient) -> None:
    for _ in range(KEYS_MAX):
        scene.program("Rita", days=1)
    assert make(rita) == (409, "")
    scene.web.now += 25 * 3600
    assert make(rita)[0] == 200
    assert len(scene.accounts.keys.of(user_row("Rita"))) == 1


def test_nobody_ends_the_key_of_somebody_else(scene: ApiScene, rita: WikiClient) -> None:
    ada = scene.program("Ada")
    (key,) = scene.accounts.keys.of(user_row("Ada"))
    rita.post("/-/keys", {**rita.form("/-/keys"), "end": key.id})
    assert ada.get("/me").status_code == 200
    assert scene.web.get("/-/keys").headers["Location"].startswith("/-/login")
