"""Decisions on texts under review: what a button decides, whom an accepted text counts for, what it may replace."""

from __future__ import annotations

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient
from wikka_port.accounts.tables import EDITS, USERS, user_row
from wikka_port.antispam.judging import FIRST_EDITS
from wikka_port.antispam.policy import Policy
from wikka_port.antispam.stored_policy import write_policy
from wikka_port.editing.suggestions import Suggestion, Suggestions
from wikka_port.names import page_key
from wikka_port.rights.rules import PageRights, Privilege

SPAM = "Buy cheap viagra online, order now! https://pills.example"
FARM = "\n".join(f"https://farm{n}.example/x" for n in range(20))


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("P", "one\n\ntwo\n\nthree", author="Olga", base=0, owner="Olga")
    made.wiki._now_ms = int(made.now * 1_000)
    return made


@pytest.fixture
def mia(web: WikiClient) -> WikiClient:
    return web.signed_in("Mia")


@pytest.fixture
def root(web: WikiClient) -> WikiClient:
    return web.signed_in("Root", admin=True)


def edit(web: WikiClient, browser: WikiClient, path: str, body: str) -> str:
    """Save a text a minute after its form was made; return where the answer leads."""
    form = browser.form(path + "/edit")
    web.now += 60
    return browser.post(path + "/edit", {**form, "body": body, "save": "1"}).headers["Location"]


def comment(web: WikiClient, browser: WikiClient, body: str, query: str = "") -> str:
    form = browser.form("/P/comments" + query)
    web.now += 60
    return browser.post("/P/comments", {**form, "body": body, "send": "1"}).headers["Location"]


def decide(root: WikiClient, place: str, *buttons: str, **fields: str) -> TestResponse:
    return root.post("/-/held", {**root.form(place), **dict.fromkeys(buttons, "1"), **fields})


def counted(web: WikiClient) -> int:
    return int(web.wiki.rows.row(USERS, user_row("Mia")).get(EDITS, b"0"))


def texts(web: WikiClient) -> list[str]:
    page = web.wiki.page("P")
    assert page is not None
    return [one.text for one in web.wiki.comments.every(page_key("P"), page.comments)]


def test_the_first_edits_of_an_account_come_to_an_end(web: WikiClient, mia: WikiClient, root: WikiClient) -> None:
    write_policy(web.wiki.rows, "", Policy(first_edits="review"), by="Root", now_ms=1)
    for number in range(FIRST_EDITS):
        place = edit(web, mia, f"/Page{number}", f"Words {number}.")
        assert place.startswith("/-/held"), number
        assert decide(root, place, "accept").status_code == 303
    assert edit(web, mia, "/P", "Further words.") == "/P"
    assert counted(web) == FIRST_EDITS + 1


def test_each_edit_and_comment_that_is_accepted_counts_once(web: WikiClient, mia: WikiClient, root: WikiClient) -> None:
    assert decide(root, edit(web, mia, "/P", FARM), "refuse").status_code == 303
    assert counted(web) == 0
    accepted = {**root.form(comment(web, mia, SPAM)), "accept": "1"}
    assert [root.post("/-/held", accepted).status_code for _twice in range(2)] == [303, 409]
    assert counted(web) == 1
    changed = comment(web, mia, FARM, "?edit=1")
    assert decide(root, changed, "accept").status_code == 303
    assert counted(web) == 1, "a change is no further comment"
    held = [edit(web, mia, f"/Page{number}", f"{number}\n{FARM}") for number in range(3)]
    assert decide(root, held[0], "accept", all="1").status_code == 200
    assert counted(web) == 4
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    form = mia.form("/P/suggestion")
    web.now += 60
    suggested = mia.post("/P/suggestion", {**form, "body": FARM, "send": "1"}).headers["Location"]
    assert decide(root, suggested, "accept").status_code == 303
    assert counted(web) == 4, "nobody has taken it yet"


def test_words_and_the_button_that_accepts_decide_nothing(web: WikiClient, root: WikiClient) -> None:
    """Enter in the field of the words presses the first button of the form."""
    place = edit(web, web, "/P", FARM)
    for fields in ({}, {"all": "1"}):
        answer = decide(root, place, "accept", said="No shops & such.", **fields)
        assert answer.status_code == 400
        assert "Nothing is decided yet" in answer.text
        assert 'value="No shops &amp; such."' in answer.text
        assert ("checked" in answer.text) == bool(fields)
        assert "It is not saved yet" in web.get(place).text
    assert decide(root, place, "accept", said=" ").status_code == 303
    page = web.wiki.page("P")
    assert page is not None
    assert page.number == 2


@pytest.mark.parametrize("buttons", [(), ("accept", "refuse")])
def test_a_form_without_one_button_decides_nothing(
    web: WikiClient, mia: WikiClient, root: WikiClient, buttons: tuple[str, ...]
) -> None:
    place = edit(web, mia, "/P", FARM)
    answer = decide(root, place, *buttons, said="why")
    assert (answer.status_code, "says nothing to do" in answer.text) == (400, True)
    assert "It is not saved yet" in mia.get(place).text
    page = web.wiki.page("P")
    assert page is not None
    assert page.number == 1


@pytest.mark.parametrize(("button", "later_s"), [("accept", 60), ("refuse", 60), ("accept", 0)])
def test_a_decision_is_on_the_text_that_was_shown(
    web: WikiClient, mia: WikiClient, root: WikiClient, button: str, later_s: int
) -> None:
    """The author may change what waits, by the button of its page: else a harmless text opens the way for another."""
    first = {**mia.form("/New/edit"), "body": f"Words.\n{FARM}", "save": "1"}
    web.now += 60
    place = mia.post("/New/edit", first).headers["Location"]
    shown = root.form(place)
    web.now += later_s
    assert mia.post("/New/edit", {**first, "body": f"Spam.\n{FARM}"}).headers["Location"] == place
    answer = root.post("/-/held", {**shown, button: "1", "said": "" if button == "accept" else "why"})
    assert (answer.status_code, "Its author has changed the text since" in answer.text) == (409, True)
    assert "Spam." in answer.text
    assert (web.wiki.page("New"), "It is not saved yet" in mia.get(place).text) == (None, True)
    nothing = {key: value for key, value in shown.items() if key != "seen"}
    assert root.post("/-/held", {**nothing, button: "1"}).status_code == 409
    assert root.post("/-/held", {**root.form_of(answer), button: "1"}).status_code == 303
    assert "It is not saved yet" not in mia.get(place).text


def test_a_text_that_comes_while_the_former_one_is_accepted_waits_on(
    web: WikiClient, mia: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {**mia.form("/P/comments"), "send": "1"}
    web.now += 60
    place = mia.post("/P/comments", {**form, "body": SPAM}).headers["Location"]
    decided = Suggestions.decide

    def late(self: Suggestions, one: Suggestion, state: str, said: str = "") -> bool:
        monkeypatch.setattr(Suggestions, "decide", decided)
        web.now += 60
        assert mia.post("/P/comments", {**form, "body": f"{SPAM} More."}).headers["Location"] == place
        return decided(self, one, state, said)

    monkeypatch.setattr(Suggestions, "decide", late)
    assert decide(root, place, "accept").status_code == 303
    assert (texts(web), counted(web)) == ([SPAM], 1)
    assert "It is not saved yet" in mia.get(place).text
    monkeypatch.setattr(Suggestions, "decide", late)
    assert decide(root, place, "refuse", said="why").status_code == 409
    assert "It is not saved yet" in mia.get(place).text
    assert decide(root, place, "accept").status_code == 303
    assert (texts(web), counted(web)) == ([SPAM, f"{SPAM} More."], 2)


def test_a_suggestion_that_its_form_sends_again_takes_the_place_of_no_other(
    web: WikiClient, mia: WikiClient, root: WikiClient
) -> None:
    """A writer of the page may be looking at the first one, which an administrator has let through."""
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    form = {**mia.form("/P/suggestion"), "send": "1"}
    for words in ("One.", "Two."):
        web.now += 60
        place = mia.post("/P/suggestion", {**form, "body": f"{words}\n{FARM}"}).headers["Location"]
        assert decide(root, place, "accept").status_code == 303
    found = [web.wiki.suggestions.one("P", one.id) for one in web.wiki.suggestions.of("P")]
    assert sorted((one.text or "").split("\n")[0] for one in found if one) == ["One.", "Two."]


def test_an_older_change_of_a_comment_replaces_no_newer_one(
    web: WikiClient, mia: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments have no history: what is replaced is gone."""
    comment(web, mia, "Words.")
    older = comment(web, mia, SPAM, "?edit=1")
    with monkeypatch.context() as crash:  # before the older one is noted as superseded
        crash.setattr(Suggestions, "supersede_changes", lambda *_given, **_options: None)
        comment(web, mia, "Better words.", "?edit=1")
    refused = decide(root, older, "accept")
    assert (refused.status_code, "newer text would be lost" in refused.text) == (409, True)
    assert texts(web) == ["Better words."]
    assert decide(root, older, "refuse").status_code == 303
    newer = comment(web, mia, f"{SPAM} Newer.", "?edit=1")
    assert decide(root, newer, "accept").status_code == 303
    assert texts(web) == [f"{SPAM} Newer."]


def test_a_text_that_waits_is_saved_beside_what_its_form_had_sent(
    web: WikiClient, mia: WikiClient, root: WikiClient
) -> None:
    """A browser that goes back sends the same form, with another text."""
    form = {**mia.form("/P/comments"), "send": "1"}
    web.now += 60
    assert mia.post("/P/comments", {**form, "body": "Words."}).headers["Location"].endswith("#c1")
    place = mia.post("/P/comments", {**form, "body": SPAM}).headers["Location"]
    assert decide(root, place, "accept").status_code == 303
    assert texts(web) == ["Words.", SPAM]


@pytest.mark.parametrize("blocked", ["2001:db8:1:2::/64", "2001:db8::/32"])
def test_a_block_of_a_network_of_ipv6_stops_its_texts_under_review(
    web: WikiClient, root: WikiClient, blocked: str
) -> None:
    here = {"REMOTE_ADDR": "2001:db8:1:2::7"}
    form = web.form_of(web.get("/P/edit", environ_base=here))
    web.now += 60
    place = web.post("/P/edit", {**form, "body": FARM, "save": "1"}, environ_base=here).headers["Location"]
    block = {**root.form("/-/blocks"), "target": blocked, "until": "", "add": "1"}
    assert root.post("/-/blocks", block).status_code == 303
    refused = decide(root, place, "accept")
    assert (refused.status_code, "may not write this any more" in refused.text) == (409, True)
    page = web.wiki.page("P")
    assert page is not None
    assert page.number == 1
