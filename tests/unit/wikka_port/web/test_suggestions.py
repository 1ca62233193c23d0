"""Suggested changes: who makes, sees, takes and refuses them, and that they are bounded."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_edit import text_in
from wikka_port.editing import suggestions
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.editing.suggestions import SUGGESTIONS
from wikka_port.limits import SUGGESTED_BY_ONE, SUGGESTED_OF_PAGE
from wikka_port.notices.notice_rows import INBOX
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.store import StoreUnavailable

TEXT = "one\n\ntwo\n\nthree"
FARM = "\n".join(f"https://farm{n}.example/x" for n in range(20))


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("P", TEXT, author="Olga", base=0, owner="Olga", markup="markdown")
    made.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    return made


def suggest(browser: WikiClient, body: str, **fields: str) -> TestResponse:
    form = browser.form("/P/suggestion")
    return browser.post("/P/suggestion", {**form, "body": body, "send": "1", **fields})


def listed(browser: WikiClient, *, refused: bool = False) -> list[str]:
    waiting, _heading, decided = browser.get("/P/suggestion").text.partition("<h2>Refused</h2>")
    return re.findall(r'suggestion\?id=([0-9a-f]{16})"', decided if refused else waiting)


def test_a_suggestion_is_seen_as_a_difference_and_taken_as_an_edit(web: WikiClient) -> None:
    assert "Suggest a change</a>" in web.get("/P").text
    assert text_in(web.get("/P/suggestion")) == TEXT
    assert suggest(web, "one\n\nTWO\n\nthree", note="louder").status_code == 303
    assert web.wiki.page("P").number == 1
    olga = web.signed_in("Olga")
    assert "Suggest a change</a>" not in olga.get("/P").text
    assert "1 suggested change</a>" in olga.get("/P/edit").text
    (found,) = listed(olga)
    shown = olga.get(f"/P/suggestion?id={found}")
    assert "<ins>TWO</ins>" in shown.text
    answer = olga.post("/P/suggestion", {**olga.form_of(shown), "take": "1"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/P")
    page = web.wiki.page("P")
    assert (page.body, page.author, page.markup) == ("one\n\nTWO\n\nthree", "Olga", "markdown")
    assert re.fullmatch("Suggested by Visitor [0-9a-f]{4}: louder", page.note)
    assert listed(olga) == []


def test_a_page_that_changed_since_is_merged_or_shown_as_a_conflict(web: WikiClient) -> None:
    suggest(web, "one\n\nTWO\n\nthree")
    web.now += 1
    suggest(web, "one\n\nzwei\n\nthree")
    web.wiki.save("P", "one\n\ntwo\n\nTHREE", author="Olga", base=1)
    olga = web.signed_in("Olga")
    second, first = listed(olga)
    olga.post("/P/suggestion", {**olga.form(f"/P/suggestion?id={first}"), "take": "1"})
    assert web.wiki.page("P").body == "one\n\nTWO\n\nTHREE"
    answer = olga.post("/P/suggestion", {**olga.form(f"/P/suggestion?id={second}"), "take": "1"})
    assert answer.status_code == 409
    assert text_in(answer) == "one\n\nzwei\n\nthree"
    assert listed(olga) == [second], "it stays until it is decided"


def test_refused_by_who_may_write_and_withdrawn_by_its_author(web: WikiClient) -> None:
    rita, ben, olga = web.signed_in("Rita"), web.signed_in("Ben"), web.signed_in("Olga")
    suggest(rita, "a")
    web.now += 1
    suggest(rita, "b")
    second, first = listed(rita)
    form = {**ben.form("/-/login"), **ben.form("/P/suggestion"), "id": first}
    assert ben.get(f"/P/suggestion?id={first}").status_code == 404, "it is not Ben's"
    for decision in ("take", "refuse"):
        assert ben.post("/P/suggestion", {**form, decision: "1"}).status_code == 404
    taken = rita.post("/P/suggestion", {**rita.form(f"/P/suggestion?id={first}"), "take": "1"})
    assert taken.status_code == 403, "its author may not write the page"
    rita.post("/P/suggestion", {**rita.form(f"/P/suggestion?id={first}"), "refuse": "1"})
    assert listed(olga) == [second]
    assert decided(rita) == {}, "who withdraws it is told nothing"
    refuse(olga, second)
    assert (listed(olga), listed(olga, refused=True)) == ([], [second])
    assert web.wiki.page("P").number == 1


def refuse(olga: WikiClient, found: str, said: str = "") -> TestResponse:
    return olga.post("/P/suggestion", {**olga.form(f"/P/suggestion?id={found}"), "refuse": "1", "said": said})


def decided(browser: WikiClient) -> dict[str, str]:
    """The own texts that were decided on, by address, with the words to the author."""
    entry = r'<li><span class="entry"><a href="(/-/held[^"]+)">(.*?)</li>'
    entries = re.findall(entry, browser.get("/-/held").text, re.DOTALL)
    return {
        address.replace("&amp;", "&"): "".join(re.findall(r'<q class="change-note">(.*?)</q>', rest))
        for address, rest in entries
    }


def notices(browser: WikiClient) -> list[str]:
    entries = re.findall(r'<li><span class="entry">(.*?)</span>\n', browser.get("/-/inbox").text, re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", " ", one).split()) for one in entries]


def test_a_refused_suggestion_is_told_to_its_author_who_opens_it_in_the_editor_again(web: WikiClient) -> None:
    rita, ben, olga = web.signed_in("Rita"), web.signed_in("Ben"), web.signed_in("Olga")
    suggest(rita, "one\n\nmine", note="louder")
    (found,) = listed(olga)
    answer = refuse(olga, found, "Too loud & long.")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/P/suggestion")
    assert listed(olga) == []
    (notice,) = notices(rita)
    assert notice.endswith("Your suggestion for P was refused Too loud &amp; long.")
    assert notices(ben) == notices(olga) == []
    ((place, said),) = decided(rita).items()
    assert said == "Too loud &amp; long."
    led = rita.get(f"/P/suggestion?id={found}")
    assert (led.status_code, led.headers["Location"]) == (303, place), "the former address leads there"
    own = rita.get(place)
    assert "<ins>mine</ins>" in own.text
    assert "It was refused. <q>Too loud &amp; long.</q>" in " ".join(own.text.replace("</p>", " ").split())
    editor = rita.post("/P/suggestion", {**rita.form_of(own), "preview": "1"})
    assert (editor.status_code, text_in(editor)) == (200, "one\n\nmine")
    again = rita.post("/P/suggestion", {**rita.form_of(editor), "body": "one\n\nquietly", "send": "1"})
    assert again.status_code == 303
    assert len(listed(olga)) == 1
    for other in (ben, web.other_visitor()):
        assert other.get(place).status_code == 404
        assert other.get(f"/P/suggestion?id={found}").status_code == 404


def test_writers_read_what_was_refused_with_the_words_and_decide_no_more(web: WikiClient) -> None:
    rita, olga = web.signed_in("Rita"), web.signed_in("Olga")
    suggest(rita, "one\n\nmine")
    (found,) = listed(olga)
    form = olga.form(f"/P/suggestion?id={found}")
    refuse(olga, found, "No.")
    assert '<q class="change-note">No.</q>' in olga.get("/P/suggestion").text
    shown = olga.get(f"/P/suggestion?id={found}").text
    assert "<ins>mine</ins>" in shown
    assert '<span class="author">Olga</span> has refused it. <q>No.</q>' in shown
    assert 'name="take"' not in shown
    for button in ("take", "refuse"):
        assert olga.post("/P/suggestion", {**form, button: "1"}).status_code == 404
    assert web.wiki.page("P").number == 1
    assert len(notices(rita)) == 1
    assert "1 suggested change</a>" not in olga.get("/P/edit").text


def test_two_writers_who_refuse_at_once_are_one_refusal(web: WikiClient) -> None:
    rita, olga = web.signed_in("Rita"), web.signed_in("Olga")
    suggest(rita, "mine")
    (found,) = listed(olga)
    one = web.wiki.suggestions.one("P", found)
    assert one is not None
    assert web.wiki.suggestions.refuse("P", one, "Olga", "first")
    assert not web.wiki.suggestions.refuse("P", one, "Otto", "first")
    web.wiki.suggestions.delete_suggestion("P", found)
    assert not web.wiki.suggestions.refuse("P", one, "Olga", "taken meanwhile")
    assert web.wiki.suggestions.refused_of("P") == []
    assert decided(rita) == {}
    assert len(web.wiki.rows.data[INBOX]) == 1


def test_a_visitor_without_an_account_finds_the_refusal_in_the_own_list(web: WikiClient) -> None:
    suggest(web, "one\n\nmine")
    olga = web.signed_in("Olga")
    refuse(olga, listed(olga)[0], "No.")
    ((place, said),) = decided(web).items()
    assert said == "No."
    assert "<ins>mine</ins>" in web.get(place).text
    assert decided(web.other_visitor()) == {}


def test_words_and_the_button_that_takes_decide_nothing(web: WikiClient) -> None:
    """Enter in the field of the words presses the first button of the form."""
    suggest(web, "mine")
    olga = web.signed_in("Olga")
    (found,) = listed(olga)
    form = olga.form(f"/P/suggestion?id={found}")
    answer = olga.post("/P/suggestion", {**form, "take": "1", "said": "No shops & such."})
    assert answer.status_code == 400
    assert 'value="No shops &amp; such."' in answer.text
    assert (listed(olga), web.wiki.page("P").number) == ([found], 1)
    assert olga.post("/P/suggestion", {**form, "take": "1", "said": " "}).status_code == 303


def test_a_writer_withdraws_what_was_suggested_before_the_page_was_opened(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    suggest(rita, "mine")
    (found,) = listed(rita)
    web.wiki.rights.change("P", web.wiki.page("P").rights, "Olga", {Privilege.WRITE: "+"})
    form = rita.form(f"/P/suggestion?id={found}")
    assert "said" not in form
    assert rita.post("/P/suggestion", {**form, "refuse": "1"}).headers["Location"] == "/P/suggestion"
    assert listed(rita) == listed(rita, refused=True) == notices(rita) == []


def test_refused_suggestions_of_a_person_and_of_a_page_are_bounded(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggestions, "REFUSED_BY_ONE", 2)
    monkeypatch.setattr(suggestions, "REFUSED_OF_PAGE", 4)
    rita, olga, store = web.signed_in("Rita"), web.signed_in("Olga"), web.wiki.suggestions
    for number in range(4):
        web.now += 1
        suggest(rita, f"mine {number}")
        refuse(olga, listed(olga)[0], f"word {number}")
    assert list(decided(rita).values()) == ["word 3", "word 2"]
    one = store.refused_of("P")[0]
    for number in range(3):
        other = replace(one, id="", owner=f"{number:032x}", time_ms=one.time_ms + number + 1)
        added = store.one("P", store.add("P", replace(other, packed_review="", refused_by="", text="x")).id)
        assert added is not None
        assert store.refuse("P", added, "Olga")
    assert [one.owner[-1:] for one in store.refused_of("P")][:3] == ["2", "1", "0"]
    assert len(store.refused_of("P")) == 4
    assert list(decided(rita).values()) == ["word 3"]
    begin = b"of:"
    assert len(web.wiki.rows.row_keys(SUGGESTIONS, begin, b"of;", limit=99)) == 4, "no row is left over"


def test_what_an_administrator_refused_is_none_of_the_writers_business(web: WikiClient) -> None:
    rita, olga, root = web.signed_in("Rita"), web.signed_in("Olga"), web.signed_in("Root", admin=True)
    web.now += 60
    form = rita.form("/P/suggestion")
    rita.now = web.now = web.now + 60
    held = rita.post("/P/suggestion", {**form, "body": FARM, "send": "1"}).headers["Location"]
    root.post("/-/held", {**root.form(held), "refuse": "1", "said": "Spam."})
    assert list(decided(rita).values()) == ["Spam."]
    assert listed(olga) == listed(olga, refused=True) == []
    assert olga.get(f"/P/suggestion?id={held[-16:]}").status_code == 404


def test_an_acceptance_that_is_repeated_brings_no_refused_suggestion_back(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rita, olga, root = web.signed_in("Rita"), web.signed_in("Olga"), web.signed_in("Root", admin=True)
    form = rita.form("/P/suggestion")
    rita.now = web.now = web.now + 60
    held = rita.post("/P/suggestion", {**form, "body": FARM, "send": "1"}).headers["Location"]
    accept = {**root.form(held), "accept": "1"}
    with monkeypatch.context() as crash:
        crash.setattr(suggestions.Suggestions, "decide", lambda *_given: False)  # as if it had ended before
        root.post("/-/held", accept)
    refuse(olga, listed(olga)[0], "No.")
    assert root.post("/-/held", accept).status_code == 303
    assert listed(olga) == []
    assert sorted(notices(rita)) == [
        "new Your suggestion for P was accepted",
        "new Your suggestion for P was refused No.",
    ]


@pytest.mark.parametrize("buttons", [(), ("take", "refuse")])
def test_a_form_without_one_button_decides_nothing(web: WikiClient, buttons: tuple[str, ...]) -> None:
    suggest(web, "a")
    olga = web.signed_in("Olga")
    (found,) = listed(olga)
    form = olga.form(f"/P/suggestion?id={found}")
    assert olga.post("/P/suggestion", {**form, **dict.fromkeys(buttons, "1")}).status_code == 400
    assert listed(olga) == [found]
    assert web.wiki.page("P").number == 1


def test_who_may_write_or_may_not_read_or_is_banned_suggests_nothing(web: WikiClient) -> None:
    banned = web.signed_in("Ben", status="banned")
    assert "Suggest a change</a>" not in banned.get("/P").text
    fields = {**web.form("/P/suggestion"), "as": "Ben", "csrf": banned.form("/-/logout").get("csrf", "")}
    assert banned.post("/P/suggestion", {**fields, "body": "x", "send": "1"}).status_code == 403
    olga = web.signed_in("Olga")
    fields = {**olga.form("/P/edit"), "body": "x", "send": "1"}
    assert olga.post("/P/suggestion", fields).status_code == 403
    web.wiki.rights.change("P", web.wiki.page("P").rights, "Olga", {Privilege.READ: "Olga"})
    assert web.get("/P/suggestion").status_code == 403
    assert listed(olga) == []


def test_forms_of_others_and_empty_ones_are_refused_and_keep_the_text(web: WikiClient) -> None:
    assert suggest(web, TEXT).status_code == 400
    answer = suggest(web, "typed", csrf="x")
    assert answer.status_code == 403
    assert text_in(answer) == "typed"
    assert web.get("/Nowhere/suggestion").status_code == 404
    assert listed(web.signed_in("Olga")) == []


def test_one_person_and_one_page_have_a_bound(web: WikiClient) -> None:
    for number in range(SUGGESTED_BY_ONE):
        assert suggest(web, f"mine {number}").status_code == 303
    answer = suggest(web, "one more")
    assert answer.status_code == 429
    assert text_in(answer) == "one more"
    store = web.wiki.suggestions
    one = store.of("P")[0]
    for number in range(SUGGESTED_OF_PAGE - SUGGESTED_BY_ONE):
        store.add("P", replace(one, id="", owner=f"{number:032x}"))
    assert suggest(web.signed_in("Rita"), "too late").status_code == 429


def test_an_account_that_ends_takes_its_suggestions_along(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    suggest(rita, "x")
    suggest(web, "y")
    assert web.wiki.suggestions.forget({owner_of_account("rita")}) == 1
    assert len(listed(web.signed_in("Olga"))) == 1


def test_a_store_that_is_away_keeps_the_text(web: WikiClient) -> None:
    form = web.form("/P/suggestion")
    web.wiki.away = True
    answer = web.post("/P/suggestion", {**form, "body": "typed", "send": "1"})
    assert (answer.status_code, text_in(answer)) == (503, "typed")


def scans(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Tables that are scanned from here on."""
    found: list[bytes] = []
    rows = web.wiki.rows
    plain = rows.scan

    def noting(table: bytes, *given: Any, **options: Any) -> Any:
        found.append(table)
        return plain(table, *given, **options)

    monkeypatch.setattr(rows, "scan", noting)
    return found


def test_the_page_itself_says_that_a_suggestion_waits(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    suggest(web, "one\n\nTWO\n\nthree")
    web.wiki.save("Everybody's", "text", author="Olga", base=0)
    olga, rita = web.signed_in("Olga"), web.signed_in("Rita")
    scanned = scans(web, monkeypatch)
    for other in (web, rita):
        assert "suggested change" not in other.get("/P").text
    assert "suggested change" not in olga.get("/Everybody%27s").text
    assert scanned == [], "who may not write a page is not told, and costs nothing; nor a page that everybody may write"
    assert '<a href="/P/suggestion">1 suggested change</a> of this page waits' in olga.get("/P").text
    assert scanned == [SUGGESTIONS], "one call"


def test_a_page_is_shown_while_its_suggestions_cannot_be_read(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    olga = web.signed_in("Olga")

    def away(*_given: Any, **_options: Any) -> Any:
        raise StoreUnavailable("away", "")

    monkeypatch.setattr(web.wiki.rows, "scan", away)
    assert olga.get("/P").status_code == 200


def test_the_form_is_an_editor_that_shows_the_page_before_it_is_sent(web: WikiClient) -> None:
    text = web.get("/P/suggestion").text
    assert "/editor.js" in text
    assert 'name="written" value="markdown"' in text
    form = web.form("/P/suggestion")
    answer = web.post("/P/suggestion", {**form, "body": "some **bold** words", "note": "why", "preview": "1"})
    assert answer.status_code == 200
    assert "<strong>bold</strong>" in answer.text
    assert text_in(answer) == "some **bold** words"
    assert 'value="why"' in answer.text
    live = web.post("/-/preview", {**form, "name": "P", "body": "some **bold** words"})
    assert "<strong>bold</strong>" in live.text
    assert listed(web.signed_in("Olga")) == []


def test_who_may_not_suggest_previews_nothing(web: WikiClient) -> None:
    banned = web.signed_in("Ben", status="suspended")
    fields = {**banned.form("/-/login"), "body": "words", "preview": "1", "name": "P"}
    assert banned.post("/P/suggestion", fields).status_code == 403
    assert banned.post("/-/preview", fields).status_code == 403
