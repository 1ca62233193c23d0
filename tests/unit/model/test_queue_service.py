"""Registrations of served queues: which are taken, and what the others are refused with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from columnar.errors import IllegalArgument, TriggerError
from columnar.model.derivations import Triggers
from columnar.model.flow_graph import flow_of
from columnar.model.queue_service import LONGEST_TIMEOUT_MS, URL_CHARACTERS, checked_service, checked_url, service_of
from columnar.model.rights import ADMIN, READ, WRITE
from columnar.model.trigger_registration import checked, from_json, to_json
from columnar.rights.derivation_parts import all_serving_rights, serving_rights

JOBS = service_of("thumbs", "jobs:make")
HOOK = service_of("thumbs", "https://host:8080/hook?token=1")


def test_a_service_is_a_registration_without_fields_of_its_own() -> None:
    assert (JOBS.name, JOBS.queue, JOBS.url) == ("queue:thumbs", "thumbs", "")
    assert (HOOK.queue, HOOK.url) == ("thumbs", "https://host:8080/hook?token=1")
    for one in (JOBS, HOOK):
        assert checked_service(one, ("jobs",)) is one
        assert from_json(to_json(one)) == one
    assert [str(place) for place in flow_of(JOBS).reads] == ["queue:thumbs"]
    assert Triggers().adding(JOBS).find("queue:thumbs") is not None


def test_a_trigger_cannot_have_the_name_of_a_service() -> None:
    with pytest.raises(IllegalArgument, match="trigger name 'queue:x'"):
        checked(replace(JOBS, name="queue:x", families=("f",)), ("jobs",))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"name": "queue:a/b"}, "a queue's name"),
        ({"name": "queue:"}, "a queue's name"),
        ({"table": "pages"}, "is in table columnar:queues"),
        ({"families": ("f",)}, "families: that is a setting for changes"),
        ({"batch": 10}, "batch: that is a setting"),
        ({"where": ("f:a=1",)}, "where: that is"),
        ({"function": "make"}, "module:function"),
        ({"rate": "fast"}, "rate 'fast'"),
        ({"side_by_side": 65}, "1 to 64 times"),
        ({"timeout_ms": 0}, "is positive"),
        ({"timeout_ms": LONGEST_TIMEOUT_MS + 1}, "timeout of a served queue"),
    ],
)
def test_what_is_no_service(changed: dict[str, object], why: str) -> None:
    with pytest.raises(IllegalArgument, match=why):
        checked_service(replace(JOBS, **changed), ("jobs",))  # type: ignore[arg-type]


def test_a_module_must_be_allowed() -> None:
    with pytest.raises(TriggerError, match="--trigger-modules jobs"):
        checked_service(JOBS, ("others",))


def test_a_url_has_no_settings_of_functions() -> None:
    with pytest.raises(IllegalArgument, match="process is a setting of functions"):
        checked_service(replace(HOOK, process="own"), ())


@pytest.mark.parametrize(
    "url",
    ["ftp://host/", "http://", "http:///x", "http://user:secret@host/", "http://host/#a", "http://host/a b",
     "http://host/\r\nEvil: 1", "http://host:99999/", "http://[::1/", "http://h\u00f6st/",
     "http://h/" + "a" * URL_CHARACTERS],
)  # fmt: skip
def test_what_is_no_url_for_messages(url: str) -> None:
    with pytest.raises(IllegalArgument):
        checked_url(url)


def test_rights_to_serve() -> None:
    args = [to_json(JOBS)]
    assert serving_rights(args) == [READ, WRITE]
    assert serving_rights([to_json(HOOK)]) == [READ, WRITE, ADMIN]
    assert serving_rights([b"no JSON"]) == [], "the method refuses it"
    assert serving_rights([to_json(replace(JOBS, name="thumbs", families=("f",)))]) == []
    assert all_serving_rights([[], args]) == [READ, WRITE]
