"""Words that belong to no text, judged by antispam: the note and the description of a file, the note of a revert."""

from __future__ import annotations

import pytest

from tests.support.file_forms import upload
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_resumed_uploads import Tus
from wikka_port.antispam.policy import DEFAULT_POLICY, changed_policy
from wikka_port.antispam.stored_policy import write_policy
from wikka_port.config import FileConfig

SPAM = "Buy cheap viagra online, order now! https://pills.example"
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
        assert "Change the note or the description" in refused.text
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


def test_first_edits_that_wait_keep_nobody_from_uploading(web: WikiClient) -> None:
    write_policy(web.wiki.rows, "", changed_policy(DEFAULT_POLICY, {"first_edits": "review"}), by="Root", now_ms=1)
    assert upload(web, ("Plan.txt", b"words"), page="/P", note=GOOD).status_code == 303
    assert upload(web, ("Other.txt", b"words"), page="/P", note=SPAM).status_code == 400
