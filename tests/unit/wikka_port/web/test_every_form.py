"""Promises of every form: its handler reads each of its fields, and a refused one comes back as it was filled in.

The forms come from the pages themselves (``tests.support.wiki_scene``).
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.support.noting_request import noting
from tests.support.page_forms import Field, Form, read
from tests.support.wiki_scene import BY_LINK, ROLES, Scene, Sent, filled, forms, posts
from wikka_port.antispam.submissions import TRAP

TYPED = {"number": "20", "email": "typed@mail.example"}
SECRET = {"password"}  # kinds of fields that are never sent back
# (handler, field) that no handler reads, and why: the browser's password manager reads it.
# A form with files is read as it arrives (``test_files_pages``), not as Werkzeug would read it.
FOR_THE_BROWSER = {
    *(("account", "username"), ("keys", "username"), ("reset", "username"), ("settings", "username")),
    *(("files", "file"), ("files", "replaces")),
}

# Read of forms that are judged: not of previews, and not of who is trusted.
OF_ANTISPAM = {TRAP, "begun"}


def filled_in(form: Form) -> dict[str, Field]:
    """The fields that a person can fill in, each with another value than the form shows."""
    found = {}
    for field in form.fields:
        if field.kind in SECRET or field.kind in ("hidden", "button") or field.name == TRAP:
            continue
        if field.kind == "checkbox":
            found[field.name] = Field(field.name, field.kind, field.value, not field.is_set)
        elif field.is_typed:
            found[field.name] = Field(field.name, field.kind, TYPED.get(field.kind, f'typed <b> & "{field.name}"'))
        elif not field.is_set:  # a radio button or an option that is not the chosen one
            found[field.name] = Field(field.name, field.kind, field.value)
    return found


def sent_with(one: Sent, given: dict[str, Field]) -> dict[str, str]:
    sent = {**one.fields(), "csrf": "0.0"}
    for name, field in given.items():
        sent.pop(name, None)
        if field.is_set:
            sent[name] = field.value
    return sent


def shown_in(html: str, name: str, kind: str) -> list[Field]:
    found = [field for form in read(html)[0] if form.method == "post" for field in form.fields if field.name == name]
    return [field for field in found if field.kind == kind and (kind == "checkbox" or field.is_set)]


@pytest.mark.parametrize("role", ROLES)
def test_a_refused_form_comes_back_as_it_was_filled_in(role: str) -> None:
    scene = Scene()
    seen = 0
    for one in posts(scene, role):
        if one.handler in BY_LINK:
            continue
        given = {
            name: field for name, field in filled_in(one.form).items() if (one.handler, name) not in FOR_THE_BROWSER
        }
        answer = scene.browsers[role].client.post(one.form.action or one.page, data=sent_with(one, given))
        assert answer.status_code == 403, one.label
        for name, field in given.items():
            seen += 1
            found = shown_in(answer.text, name, field.kind)
            shown = [(other.value, other.is_set) for other in found]
            assert (field.value, field.is_set) in shown, (one.label, name, shown)
    assert seen >= 8


def found_again(scene: Scene, role: str, sent: Sent) -> Sent:
    """The form in another scene: on the page that showed it, or behind another token than there, else by a walk."""
    label = sent.label.partition("?")[0]
    for starts in ([sent.page, *scene.doors(role)], None):
        for one in forms(scene, role, starts=starts):
            if one.label.startswith(label):
                return one
    raise AssertionError(f"another scene has no {label}")


@pytest.mark.parametrize("role", ROLES)
def test_every_field_of_a_form_is_read_by_its_handler(role: str) -> None:
    for sent in forms(Scene(), role):
        label = sent.label.partition("?")[0]
        with noting() as noted:
            scene = Scene()
            one = found_again(scene, role, sent)
            noted.clear()
            target, fields = one.form.action or one.page, filled(scene.browsers[role], one)
            if one.form.method == "get":
                del fields["csrf"]
            noted.clear()
            if one.form.method == "post":
                scene.browsers[role].client.post(target, data=fields)
            else:
                scene.browsers[role].client.get(urlsplit(target).path, query_string=fields)
            read_of_it = {key for _, _, key in noted}
            known = {field.name for field in one.form.fields if field.kind != "button" and field.name in fields}
            known |= {key for key, _ in parse_qsl(urlsplit(target).query)}
            unread = {name for name in known - read_of_it - OF_ANTISPAM if (one.handler, name) not in FOR_THE_BROWSER}
            assert unread == set(), label
