"""Files by the API: a removal names who used the file, administrators erase versions, a lost content is said."""

from __future__ import annotations

import logging
from typing import Any, NoReturn

import pytest
from werkzeug.test import TestResponse

from tests.support.api_client import ApiClient, ApiScene
from wikka_port.accounts.tables import AUDIT
from wikka_port.api import file_calls
from wikka_port.files.file_rows import BLOBS, CHUNKS
from wikka_port.request_queues import PLACE_KEY, QueueFull, QueueName, Restart
from wikka_port.rights import guarded_files
from wikka_port.rights.rules import PageRights, Privilege

NEW, ANY = {"If-None-Match": "*"}, {"If-Match": "*"}


@pytest.fixture
def scene() -> ApiScene:
    return ApiScene()


@pytest.fixture
def rita(scene: ApiScene) -> ApiClient:
    made = scene.program("Rita")
    made.save("Page", "A text.")
    stored(made, b"one", NEW)
    return made


def stored(program: ApiClient, content: bytes, state: dict[str, str] = ANY, name: str = "Plan.txt") -> TestResponse:
    given = {"page": "Page", "name": name}
    answer = program.call("PUT", "/file/content", query_string=given, headers=state, data=content)
    assert answer.status_code in (200, 201), answer.text
    return answer


def removed(program: ApiClient, state: dict[str, str] = ANY) -> TestResponse:
    return program.call("DELETE", "/file", query_string={"page": "Page", "name": "plan.TXT"}, headers=state)


def erased(program: ApiClient, **given: Any) -> TestResponse:
    wanted = {"page": "Page", "name": "Plan.txt", "version": 1, "sure": "true", **given}
    return program.call("DELETE", "/file/version", query_string=wanted)


def audited(scene: ApiScene) -> list[tuple[bytes, bytes]]:
    return [(cells[b"a:what"], cells[b"a:note"]) for _, cells in scene.wiki.rows.scan(AUDIT)]


def test_a_removal_names_the_pages_that_used_the_file(scene: ApiScene, rita: ApiClient) -> None:
    rita.save("Page/Sub", "[[Plan.txt]]")
    rita.save("Other", "[[file:Page/Plan.txt]]")
    rita.save("Hidden", "[[file:Page/Plan.txt]]")
    scene.wiki.rights.change("Hidden", PageRights("Rita"), "Ada", {Privilege.READ: "Ada"})
    stale = removed(rita, {"If-Match": '"other"'})
    assert (stale.status_code, rita.get("/file", page="Page", name="Plan.txt").status_code) == (412, 200)
    answer = removed(rita)
    assert (answer.status_code, answer.json["page"], answer.json["name"]) == (200, "Page", "Plan.txt")
    assert (set(answer.json["used_on"]), answer.json["more"]) == ({"Page/Sub", "Other"}, False)
    assert removed(rita).status_code == 404


def test_a_removal_says_that_more_pages_used_it(rita: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_calls, "USERS_NAMED", 2)
    for number in range(3):
        rita.save(f"Page/{number}", "[[Plan.txt]]")
    answer = removed(rita)
    assert (len(answer.json["used_on"]), answer.json["more"]) == (2, True)


def test_a_file_for_a_page_that_redirects_is_its_targets(rita: ApiClient) -> None:
    rita.save("Old", "#REDIRECT [[Page]]")

    def put(content: bytes, name: str, state: dict[str, str]) -> TestResponse:
        given = {"page": "Old", "name": name}
        return rita.call("PUT", "/file/content", query_string=given, headers=state, data=content)

    first = put(b"two", "New.txt", NEW)
    assert (first.status_code, first.json["page"], first.json["version"]) == (201, "Page", 1)
    assert rita.get("/file/content", page="Page", name="New.txt").data == b"two"
    assert put(b"no", "plan.txt", NEW).status_code == 412, "the target has it"
    second = put(b"three", "New.txt", {"If-Match": first.headers["ETag"]})
    assert (second.status_code, second.json["version"]) == (200, 2)
    assert put(b"no", "New.txt", {"If-Match": first.headers["ETag"]}).status_code == 412
    assert rita.get("/page/files", name="Old").json["files"] == []


class QuickPlace:
    """The quick lane of a process, from which a request for another queue starts again there."""

    queue = "quick"
    has_arriving_body = False

    def restart(self, queue: QueueName, _full: type[QueueFull]) -> NoReturn:
        raise Restart(queue)


def test_a_request_that_starts_again_in_another_queue_counts_once(
    scene: ApiScene, rita: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(file_calls, "take_upload", lambda _site, request: counted.append(request.method))
    given: dict[str, Any] = {"query_string": {"page": "Page", "name": "Plan.txt"}, "headers": ANY}
    in_quick_lane = {"environ_base": {PLACE_KEY: QuickPlace()}}
    with pytest.raises(Restart):
        rita.call("PUT", "/file/content", data=b"two", **given, **in_quick_lane)
    assert counted == []
    rita.call("PUT", "/file/content", data=b"two", **given)
    assert counted == ["PUT"]
    rita.save("Other", "[[file:Page/Plan.txt]]")
    rita.save("Page/Sub", "[[Plan.txt]]")
    scene.wiki.rights.change("Other", PageRights("Rita"), "Ada", {Privilege.READ: "Ada"})
    monkeypatch.setattr(file_calls, "USERS_NAMED", 0)
    monkeypatch.setattr(guarded_files, "LISTED_QUICK", 0)
    with pytest.raises(Restart):
        rita.call("DELETE", "/file", **given, **in_quick_lane)
    assert counted == ["PUT"]
    assert rita.call("DELETE", "/file", **given).status_code == 200
    assert counted == ["PUT", "DELETE"]


def test_administrators_erase_a_version_when_they_are_sure(scene: ApiScene, rita: ApiClient) -> None:
    stored(rita, b"two")
    stored(rita, b"one", NEW, "Same.txt")
    ada = scene.program("Ada")
    for program, status in ((scene.anonymous, 401), (rita, 403), (scene.program("Ada", "read", "write"), 403)):
        assert erased(program).status_code == status
    unsure = erased(ada, sure="false")
    assert (unsure.status_code, "sure=true" in unsure.json["detail"]) == (409, True)
    assert erased(rita, sure="false").status_code == 403, "who may not is not asked"
    assert erased(ada, version=7).status_code == 404
    assert erased(ada, page="Nothing").status_code == 404
    assert erased(ada, name="Nothing.txt").status_code == 404
    assert rita.get("/file/content", page="Page", name="Plan.txt", version=1).data == b"one"
    answer = erased(ada, reason="asked for")
    expected = {"page": "Page", "name": "Plan.txt", "version": 1, "size": 0, "others": 1}
    assert (answer.status_code, answer.json) == (200, expected)
    assert rita.get("/file/content", page="Page", name="Plan.txt", version=1).status_code == 404
    assert (b"erase file version", b"Page: Plan.txt, version 1. asked for") in audited(scene)
    answer = erased(ada, version=2)
    assert (answer.json["size"], answer.json["others"]) == (3, 0), "the newest one is removed before"
    assert rita.get("/file", page="Page", name="Plan.txt").status_code == 404
    assert erased(ada, version=2).json["size"] == 0, "again changes nothing"


def test_a_lost_content_is_said_and_logged(scene: ApiScene, rita: ApiClient, caplog: pytest.LogCaptureFixture) -> None:
    sha256 = rita.get("/file", page="Page", name="Plan.txt").json["sha256"]
    for table in (CHUNKS, BLOBS):
        scene.wiki.rows.data[table].clear()
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            answer = rita.get("/file/content", page="Page", name="Plan.txt")
        assert (answer.status_code, answer.content_type) == (503, "application/problem+json")
        assert "has lost the content" in answer.json["detail"]
        assert [sha256 in one.getMessage() for one in caplog.records] == [True]
    assert rita.get("/file", page="Page", name="Plan.txt").status_code == 200
    assert [one["name"] for one in rita.get("/page/files", name="Page").json["files"]] == ["Plan.txt"]
    stored(rita, b"one", NEW, "Again.txt")
    assert rita.get("/file/content", page="Page", name="Plan.txt").data == b"one", "an equal upload brings it back"
