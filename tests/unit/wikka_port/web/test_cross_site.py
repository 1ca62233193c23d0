"""Requests that another site makes a visitor's browser send: refused on every route, and nothing is changed.

The forms are those that a walk through the application finds (``tests.support.wiki_scene``).
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_scene import BY_LINK, ROLES, SCRIPTED, Scene, Sent, filled, forms, fresh_token, posts, walk
from wikka_port.handlers import POSTABLE
from wikka_port.urls import page_path

NONE: Mapping[str, str] = {}
FOREIGN: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "https://localhost"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="module")
def sendable(scene: Scene) -> Mapping[str, list[Sent]]:
    return {role: posts(scene, role) for role in ROLES}


def send(
    scene: Scene, role: str, sent: Sent, fields: dict[str, str], headers: Mapping[str, str] = NONE
) -> TestResponse:
    return scene.browsers[role].client.post(sent.form.action or sent.page, data=fields, headers=dict(headers))


def test_every_route_that_takes_a_post_has_a_form_that_is_found(sendable: Mapping[str, list[Sent]]) -> None:
    found = {one.handler for role in ROLES for one in sendable[role]}
    assert found >= POSTABLE, "show the walk where these forms are: wiki_scene.Scene.doors, or SCRIPTED"
    assert found <= POSTABLE, "a form leads to a handler that takes no POST"
    assert SCRIPTED.keys() & POSTABLE <= found


@pytest.mark.parametrize("role", ROLES)
def test_without_a_token_of_this_browser_and_session_nothing_is_done(
    scene: Scene, sendable: Mapping[str, list[Sent]], role: str
) -> None:
    strangers = scene.web.other_visitor()
    signed_in_elsewhere = scene.enter("Rita")
    tokens = ["", "0.0", fresh_token(strangers, "/-/login"), fresh_token(signed_in_elsewhere, "/-/settings")]
    for sent in sendable[role]:
        if sent.handler in BY_LINK:
            continue
        fields = filled(scene.browsers[role], sent)
        before = scene.state()
        for token in tokens:
            answer = send(scene, role, sent, {**fields, "csrf": token})
            assert answer.status_code in (401, 403), (sent.label, token)
            assert "wikka_session" not in "".join(answer.headers.getlist("Set-Cookie")), sent.label
        del fields["csrf"]
        assert send(scene, role, sent, fields).status_code in (401, 403), sent.label
        assert scene.state() == before, sent.label


@pytest.mark.parametrize("role", ROLES)
def test_from_another_origin_nothing_is_done_even_with_the_right_token(
    scene: Scene, sendable: Mapping[str, list[Sent]], role: str
) -> None:
    for sent in sendable[role]:
        fields = filled(scene.browsers[role], sent)
        before = scene.state()
        for headers in FOREIGN:
            answer = send(scene, role, sent, fields, headers)
            assert answer.status_code in (401, 403), (sent.label, headers)
            assert "wikka_session" not in "".join(answer.headers.getlist("Set-Cookie")), sent.label
        assert scene.state() == before, sent.label


@pytest.mark.parametrize("role", ROLES)
def test_the_same_forms_are_taken_from_the_wiki_itself(sendable: Mapping[str, list[Sent]], role: str) -> None:
    """Or the tests above would pass without a guard."""
    refused = []
    for sent in sendable[role]:
        scene = Scene()
        again = posts_like(scene, role, sent)[0]
        headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
        answer = send(scene, role, again, filled(scene.browsers[role], again), headers)
        if answer.status_code == 403 and "could not be checked" in answer.text:
            refused.append(sent.label)
    assert refused == []


def posts_like(scene: Scene, role: str, sent: Sent) -> list[Sent]:
    """The same form in another wiki; one behind a link of a mail, or of a draft, has another address there."""
    if not any(
        key in sent.page for key in ("token=", "administrator=", "invitation=", "draft?draft=", "suggestion?id=")
    ):
        return [sent]
    starts = [*scene.doors(role), page_path("Lent", "suggestion", id=scene.suggestion)]
    shown = forms(scene, role, lambda form: form.method == "post", starts)
    return [one for one in shown if (one.handler, one.button) == (sent.handler, sent.button)]


def test_what_answers_to_get_changes_nothing(scene: Scene) -> None:
    for role in ROLES:
        before = scene.state()
        addresses = [path for path, _ in walk(scene, role)]
        after = scene.state()
        assert len(addresses) > 40
        for table in before.keys() | after.keys():
            if table not in ("b'users'", "b'tokens'", "b'audit'"):  # when a session was seen; the walk's own links
                assert before.get(table) == after.get(table), (role, table)
