"""Words that belong to no text, judged by antispam: names, reasons, and the notes of files and of a revert."""

from __future__ import annotations

import pytest

from tests.support.account_pages import register
from tests.support.api_client import ApiScene
from tests.support.file_forms import upload
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_resumed_uploads import Tus
from wikka_port import schema
from wikka_port.antispam.policy import DEFAULT_POLICY, changed_policy
from wikka_port.antispam.stored_policy import write_policy
from wikka_port.config import FileConfig
from wikka_port.moving.journal import DELETED, deleted_row

SPAM = "Buy cheap viagra online, order now! https://pills.example"
SPAM_NAME = "Buy cheap viagra www.pills.example"
SPAM_PATH = "/Buy_cheap_viagra_www.pills.example"
GOOD = "The mouth of the river at low tide, seen from the north."


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000, files=FileConfig(bytes_max=10_000))
    made.wiki.save("P", "one", author="Olga", base=0)
    made.wiki.save("P", "two", author="Olga", base=1)
    return made


def files(web: WikiClient) -> list[str]:
    return [name for name, one in web.wiki.page("P").files.items() if one.is_there]


@pytest.mark.parametrize("field", ["note", "alt"])
def test_a_file_with_spam_beside_it_is_refused_before_it_is_read(web: WikiClient, field: str) -> None:
    mia = web.signed_in("Mia")
    for browser in (web, mia):
        refused = upload(browser, ("Plan.txt", b"words"), page="/P", **{field: SPAM})
        assert refused.status_code == 400
        assert "Change the name, the note or the description" in refused.text
        assert "advertising" in refused.text
        assert SPAM in refused.text, "it comes back as it was typed"
        assert Tus(browser, "P").begin("Part.txt", 5, **{field: SPAM}).status_code == 422
    assert files(web) == []
    assert upload(web, ("Plan.txt", b"words"), page="/P", **{field: GOOD}).status_code == 303
    assert Tus(web, "P").begin("Part.txt", 5, **{field: GOOD}).status_code == 201
    assert files(web) == ["Plan.txt"]


def test_many_files_with_the_same_note_are_no_repetition(web: WikiClient) -> None:
    given = [(f"Plan {number}.txt", b"words") for number in range(8)]
    assert upload(web, *given, page="/P", note=GOOD).status_code == 303
    assert len(files(web)) == 8


def test_a_file_that_is_described_or_removed_has_no_spam_beside_it(web: WikiClient) -> None:
    upload(web, ("Plan.txt", b"words"), page="/P")
    path = "/P/file?file=Plan.txt"
    for button in ("describe", "remove"):
        refused = web.post(path, {**web.form(path), "alt": "", "note": SPAM, button: "1"})
        assert refused.status_code == 409
        assert SPAM in refused.text
    assert files(web) == ["Plan.txt"]
    assert web.post(path, {**web.form(path), "alt": GOOD, "note": "", "describe": "1"}).status_code == 303


def test_a_revert_has_no_spam_beside_it(web: WikiClient) -> None:
    path = "/P/revert?revision=1"
    refused = web.post(path, {**web.form(path), "note": SPAM})
    assert refused.status_code == 400
    assert "advertising" in refused.text
    assert web.wiki.page("P").body == "two"
    assert web.post(path, {**web.form(path), "note": "It was right before."}).status_code == 303
    assert (web.wiki.page("P").body, web.wiki.page("P").note) == ("one", "It was right before.")


def test_who_is_trusted_writes_what_he_likes(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    assert upload(root, ("Plan.txt", b"words"), page="/P", note=SPAM).status_code == 303


def test_a_new_page_with_spam_for_a_name_waits(web: WikiClient) -> None:
    for browser in (web, web.signed_in("Mia")):
        kept = browser.save(SPAM_PATH, "x")
        assert kept.headers["Location"].startswith("/-/held?page=Buy")
        assert "advertising" in browser.get(kept.headers["Location"]).text
    assert web.wiki.page(SPAM_NAME) is None
    web.wiki.save(SPAM_NAME, "x", author="Root", base=0)
    assert web.save(SPAM_PATH, "An edit of the page that is there.").headers["Location"] == SPAM_PATH


def test_the_same_text_on_new_pages_is_a_repetition_whatever_their_names_and_notes(web: WikiClient) -> None:
    text = "The same words are added to several pages of the wiki by a program."
    places = [web.save(f"/New_{n}", text, note=f"note {n}").headers["Location"] for n in range(4)]
    assert [place.startswith("/-/held") for place in places] == [False, False, False, True]


@pytest.mark.parametrize("given", [{"new": SPAM_NAME, "reason": ""}, {"new": "Tides", "reason": SPAM}])
def test_a_page_is_not_renamed_to_spam(web: WikiClient, given: dict[str, str]) -> None:
    mia = web.signed_in("Mia")
    refused = mia.post("/P/rename", {**mia.form("/P/rename"), **given})
    assert refused.status_code == 400
    assert "Change the new name or the reason. It reads like advertising" in refused.text
    assert f'value="{given["new"]}"' in refused.text, "it comes back as it was typed"
    good = {"new": "Tides", "reason": GOOD}
    assert mia.post("/P/rename", {**mia.form("/P/rename"), **good}).status_code == 409, "here no page can be renamed"
    root = web.signed_in("Root", admin=True)
    assert root.post("/P/rename", {**root.form("/P/rename"), **given}).status_code == 409, "who is trusted may"


def test_the_reason_of_a_deletion_and_the_new_name_of_an_undeletion_are_judged(web: WikiClient) -> None:
    web.wiki.save("Own", "one", author="Mia", base=0, owner="Mia")
    mia = web.signed_in("Mia")
    refused = mia.post("/Own/delete", {**mia.form("/Own/delete"), "reason": SPAM})
    assert (refused.status_code, "Change the reason. It reads like advertising" in refused.text) == (400, True)
    assert mia.post("/Own/delete", {**mia.form("/Own/delete"), "reason": GOOD}).status_code == 409
    gone = {schema.NAME: b"Gone", schema.VERSIONCOUNT: b"1:0123456789abcdef", schema.HEAD: b"1:0123456789abcdef"}
    gone[schema.OWNER] = b"Mia"
    web.wiki.rows.put(DELETED, deleted_row("Gone", 1, b"0123456789abcdef"), gone)
    form = mia.form("/Gone/undelete")
    refused = mia.post("/Gone/undelete", {**form, "new": SPAM_NAME})
    assert (refused.status_code, "Give the page another name. It reads like advertising" in refused.text) == (400, True)
    assert mia.post("/Gone/undelete", {**form, "new": "Tides"}).status_code == 409
    assert mia.post("/Gone/undelete", {**form, "new": "Gone"}).status_code == 409


@pytest.mark.parametrize("name", ["Buy-cheap-viagra.txt", "Cheap viagra www.pills.example.txt"])
def test_a_new_file_with_spam_for_a_name_is_refused(web: WikiClient, name: str) -> None:
    refused = upload(web, (name, b"words"), page="/P")
    assert (refused.status_code, "Change the name, the note or the description" in refused.text) == (400, True)
    assert Tus(web, "P").begin(name, 5).status_code == 422
    assert files(web) == []
    root = web.signed_in("Root", admin=True)
    assert upload(root, (name, b"words"), page="/P").status_code == 303
    assert upload(web, (name, b"other words"), page="/P", replace="yes").status_code == 303, "it has its name already"
    assert Tus(web, "P").begin(name, 5, replace="yes").status_code == 201


def test_programs_are_judged_by_names_and_reasons_alike() -> None:
    scene = ApiScene()
    rita = scene.program("Rita")
    assert rita.save(SPAM_NAME, "x").status_code == 202
    assert rita.save("Page", "A text.").status_code == 201
    moves = ({"to": SPAM_NAME}, {"to": "Tides", "reason": SPAM}, {"to": "Tides"})
    state = {"If-Match": "*"}
    answers = [rita.call("POST", "/page/move", query_string={"name": "Page"}, json=one, headers=state) for one in moves]
    assert [one.status_code for one in answers] == [422, 422, 409]
    for reason, status in ((SPAM, 422), (GOOD, 409)):
        query = {"name": "Page", "reason": reason}
        answer = rita.call("DELETE", "/page", query_string=query, headers={"If-Match": "*"})
        assert answer.status_code == status, reason
    for name, status in (("Buy-cheap-viagra.txt", 422), ("Plan.txt", 201)):
        query = {"page": "Page", "name": name}
        headers = {"If-None-Match": "*"}
        answer = rita.call("PUT", "/file/content", query_string=query, headers=headers, data=b"words")
        assert answer.status_code == status, name


@pytest.mark.parametrize("name", ["BuyCheapViagra", "Cheap pills www.pills.example", "cheapviagra", "casino-bonus"])
def test_no_account_has_spam_for_a_name(web: WikiClient, name: str) -> None:
    refused = register(web, name)
    assert (refused.status_code, "Choose another name. It reads like advertising" in refused.text) == (400, True)
    assert f'value="{name}"' in refused.text, "it comes back as it was typed"
    assert register(web, "McDonald").status_code == 303


def test_first_edits_that_wait_keep_nobody_from_uploading(web: WikiClient) -> None:
    write_policy(web.wiki.rows, "", changed_policy(DEFAULT_POLICY, {"first_edits": "review"}), by="Root", now_ms=1)
    assert upload(web, ("Plan.txt", b"words"), page="/P", note=GOOD).status_code == 303
    assert upload(web, ("Other.txt", b"words"), page="/P", note=SPAM).status_code == 400
