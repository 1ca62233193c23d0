"""Edits and comments under review: who is stopped, that texts are kept, and what administrators decide."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.support import page_forms
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_edit import text_in
from wikka_port.accounts.tables import EDITS, USERS, user_row
from wikka_port.antispam.judging import TRUSTED_AGE_S, TRUSTED_EDITS
from wikka_port.antispam.policy import Policy
from wikka_port.antispam.stored_policy import policy_history, read_policy, write_policy
from wikka_port.editing.suggestions import SUGGESTIONS
from wikka_port.limits import REVIEWS_MAX, REVIEWS_OF_NETWORK
from wikka_port.names import page_key
from wikka_port.notices.notice_rows import INBOX
from wikka_port.rights.rules import PageRights, Privilege

SPAM = "Buy cheap viagra online, order now! https://pills.example"
FARM = "\n".join(f"https://farm{n}.example/x" for n in range(20))


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("P", "one\n\ntwo\n\nthree", author="Olga", base=0, owner="Olga")
    return made


def send(browser: WikiClient, path: str, body: str, *, after_s: float = 60, **fields: str) -> TestResponse:
    form = browser.form(path + "/edit")
    shared_clock_of(browser, after_s)
    return browser.post(path + "/edit", {**form, "body": body, "save": "1", **fields})


CLOCK: list[WikiClient] = []


def shared_clock_of(browser: WikiClient, seconds: float) -> None:
    CLOCK[0].now += seconds
    browser.now = CLOCK[0].now


@pytest.fixture(autouse=True)
def clock(web: WikiClient) -> None:
    CLOCK[:] = [web]


def waiting(root: WikiClient) -> list[str]:
    return [
        link.replace("&amp;", "&") for link in re.findall(r'href="(/-/held\?page=[^"]+)"', root.get("/-/held").text)
    ]


def decide(root: WikiClient, path: str, button: str, **fields: str) -> TestResponse:
    form = root.form(path)
    return root.post("/-/held", {**form, button: "1", **fields})


def test_an_edit_under_review_keeps_its_text_and_is_accepted_as_its_authors(web: WikiClient) -> None:
    answer = send(web, "/P", f"one\n\ntwo\n\nthree\n\n{SPAM}", note="a note")
    assert answer.status_code == 303
    place = answer.headers["Location"]
    assert place.startswith("/-/held?page=P&id=")
    assert web.wiki.page("P").number == 1
    shown = web.get(place).text
    assert "It is not saved yet" in shown
    assert "It reads like advertising" in shown
    assert "pills.example" in shown
    root = web.signed_in("Root", admin=True)
    assert waiting(root) == [place]
    web.wiki.save("P", "ONE\n\ntwo\n\nthree", author="Olga", base=1)
    assert "accepting it merges both" in root.get(place).text
    assert decide(root, place, "accept").headers["Location"] == "/-/held"
    page = web.wiki.page("P")
    assert page.body == f"ONE\n\ntwo\n\nthree\n\n{SPAM}"
    assert re.fullmatch("Visitor [0-9a-f]{4}", page.author)
    assert (page.signed, page.note) == ("visitor", "a note")
    assert waiting(root) == []
    assert "It was accepted" in web.get(place).text
    assert decide(root, place, "accept").status_code in (200, 400, 409), "it is decided"
    assert web.wiki.page("P").number == 3
    assert [one.what for one in accounts(web).audit.recent(1)] == ["review accepted"]


def accounts(web: WikiClient) -> Any:
    from tests.support.wiki_scene import EditBuckets, make_accounts

    return make_accounts(web.wiki.rows, web.config, lambda: web.now, EditBuckets.opened(10))


def test_a_refused_text_stays_with_its_author(web: WikiClient) -> None:
    place = send(web, "/New page", SPAM).headers["Location"]
    root = web.signed_in("Root", admin=True)
    assert decide(root, place, "refuse", said="No shops, please.").status_code == 303
    shown = web.get(place).text
    assert "It was refused." in shown
    assert "No shops, please." in shown
    assert "pills.example" in shown
    again = web.post("/New_page/edit", {**web.form_of(web.get(place)), "preview": "1"})
    assert text_in(again) == SPAM
    assert web.wiki.page("New page") is None


def test_only_its_author_and_administrators_see_a_text_under_review(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    place = send(mia, "/P", FARM).headers["Location"]
    assert mia.get(place).status_code == 200
    for other in (web, web.signed_in("Olga")):
        assert other.get(place).status_code == 404
        assert "farm" not in other.get("/-/held").text
        assert place.rpartition("=")[2] not in other.get("/-/held").text, "the list of one's own"
        assert "farm1.example" not in other.get("/P/suggestion").text
        found = place.rpartition("=")[2]
        assert other.get(f"/P/suggestion?id={found}").status_code == 404
        refused = other.post("/-/held", {**other.form("/P/edit"), "page": "P", "id": found, "accept": "1"})
        assert refused.status_code == 404
    own = mia.post("/-/held", {**mia.form_of(mia.get(place)), "accept": "1"})
    assert own.status_code == 403
    assert web.wiki.page("P").number == 1
    assert mia.post("/-/held", {**mia.form_of(mia.get(place)), "withdraw": "1"}).status_code == 303
    assert "taken it back" in mia.get(place).text
    assert waiting(web.signed_in("Root", admin=True)) == []


def test_the_rights_of_the_author_are_judged_again(web: WikiClient) -> None:
    place = send(web, "/P", FARM).headers["Location"]
    root = web.signed_in("Root", admin=True)
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    refused = decide(root, place, "accept")
    assert refused.status_code == 409
    assert "may not write this any more" in refused.text
    assert web.wiki.page("P").number == 1
    assert waiting(root) == [place]


def test_a_text_that_cannot_be_merged_still_waits(web: WikiClient) -> None:
    place = send(web, "/P", f"{FARM}\n\ntwo\n\nthree").headers["Location"]
    web.wiki.save("P", "uno\n\ntwo\n\nthree", author="Olga", base=1)
    root = web.signed_in("Root", admin=True)
    refused = decide(root, place, "accept")
    assert refused.status_code == 409
    assert "changed in the same place" in refused.text
    assert "farm19.example" in refused.text
    assert waiting(root) == [place]


def test_all_of_an_author_are_accepted_or_refused_together(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for number in range(3):
        assert send(mia, f"/Page{number}", f"{number}\n{FARM}").status_code == 303
    send(web, "/Other", FARM)
    root = web.signed_in("Root", admin=True)
    assert len(waiting(root)) == 4
    mias = next(place for place in waiting(root) if "page=Page1" in place)
    answer = decide(root, mias, "accept", all="1")
    assert "3 texts are accepted." in answer.text
    assert [web.wiki.page(f"Page{number}").author for number in range(3)] == ["Mia"] * 3
    assert decide(root, waiting(root)[0], "refuse", all="1").status_code == 200
    assert waiting(root) == []


def test_words_to_the_author_are_with_each_text_that_is_refused_together(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for number in range(3):
        send(mia, f"/Page{number}", f"{number}\n{FARM}")
    root = web.signed_in("Root", admin=True)
    places = waiting(root)
    decide(root, places[0], "refuse", all="1", said="No shops, please.")
    assert waiting(root) == []
    assert ["No shops, please." in mia.get(place).text for place in places] == [True] * 3


def test_a_comment_under_review_is_accepted_as_its_authors(web: WikiClient) -> None:
    form = web.form("/P/comments")
    web.now += 60
    answer = web.post("/P/comments", {**form, "body": "Great post! Visit my site https://a.example", "send": "1"})
    place = answer.headers["Location"]
    assert "A comment under review" in web.get(place).text
    assert "a.example" not in web.get("/P/comments").text
    root = web.signed_in("Root", admin=True)
    assert decide(root, place, "accept").status_code == 303
    shown = web.get("/P/comments").text
    assert "a.example" in shown
    assert shown.count('class="author">Visitor') >= 1


@pytest.mark.parametrize("button", ["refuse", "withdraw"])
def test_a_refused_comment_is_changed_and_sent_anew(web: WikiClient, button: str) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    web.post("/P/comments", {**web.form("/P/comments"), "body": "Words.", "send": "1"})
    form = mia.form("/P/comments?answer=1")
    shared_clock_of(mia, 60)
    place = mia.post("/P/comments", {**form, "body": SPAM, "send": "1"}).headers["Location"]
    assert decide(mia if button == "withdraw" else root, place, button).status_code == 303
    assert forms_to("/P/comments", root.get(place)) == [], "it is not the administrator's"
    (form,) = forms_to("/P/comments", mia.get(place))
    again = mia.post("/P/comments", {**form, "preview": "1"})
    assert text_in(again) == SPAM
    assert "not sent yet" in again.text
    assert "Words." in again.text, "beside the comment that it answers"
    shared_clock_of(mia, 60)
    sent = mia.post("/P/comments", {**mia.form_of(again), "body": "Other words.", "send": "1"})
    assert sent.headers["Location"].endswith("#c2")
    page = web.wiki.page("P")
    assert page is not None
    made = web.wiki.comments.comment_at(page_key("P"), 2, page.comments)
    assert (made.text, made.author, made.parent) == ("Other words.", "Mia", 1)
    assert mia.post("/P/comments", {**mia.form_of(again), "body": "Other words.", "send": "1"}).status_code == 303
    again_there = web.wiki.page("P")
    assert again_there is not None
    assert again_there.comments.count == 2, "the same form adds one comment"


def test_a_comment_that_waits_is_replaced_by_its_author(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    form = mia.form("/P/comments")
    shared_clock_of(mia, 60)
    place = mia.post("/P/comments", {**form, "body": SPAM, "send": "1"}).headers["Location"]
    (form,) = forms_to("/P/comments", mia.get(place))
    again = mia.post("/P/comments", {**form, "preview": "1"})
    shared_clock_of(mia, 60)
    sent = mia.post("/P/comments", {**mia.form_of(again), "body": f"{SPAM} Again.", "send": "1"})
    assert sent.headers["Location"] == place, "one text waits, not two"
    assert waiting(root) == [place]
    assert "Again." in root.get(place).text


def test_a_refused_change_of_a_comment_is_changed_and_sent_anew(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    web.wiki._now_ms = int(web.now * 1_000)
    mia.post("/P/comments", {**mia.form("/P/comments"), "body": "Words.", "send": "1"})
    form = mia.form("/P/comments?edit=1")
    shared_clock_of(mia, 60)
    place = mia.post("/P/comments", {**form, "body": SPAM, "send": "1"}).headers["Location"]
    decide(root, place, "refuse")
    (form,) = forms_to("/P/comments", mia.get(place))
    again = mia.post("/P/comments", {**form, "preview": "1"})
    assert text_in(again) == SPAM
    shared_clock_of(mia, 60)
    assert mia.post("/P/comments", {**mia.form_of(again), "body": "Better.", "send": "1"}).status_code == 303
    page = web.wiki.page("P")
    assert page is not None
    assert page.comments.count == 1
    assert web.wiki.comments.comment_at(page_key("P"), 1, page.comments).text == "Better."


def forms_to(path: str, answer: TestResponse) -> list[dict[str, str]]:
    """The fields of the forms of a page that are sent to ``path``."""
    return [one.sent() for one in page_forms.read(answer.text)[0] if one.path == path]


def test_forms_of_programs_come_back_with_their_text(web: WikiClient) -> None:
    filled = send(web, "/P", "four", homepage="https://x.example")
    assert filled.status_code == 400
    assert "people do not see" in filled.text
    assert text_in(filled) == "four"
    fast = send(web, "/P", "four https://x.example", after_s=1)
    assert "faster than a person" in fast.text
    web.now += 3
    assert web.post("/P/edit", {**web.form_of(fast), "body": "four https://x.example"}).status_code == 303
    assert send(web, "/P", "five", after_s=0).status_code == 303, "without a link nothing is too fast"


def test_a_preview_does_not_begin_the_time_of_the_form_anew(web: WikiClient) -> None:
    form = web.form("/P/edit")
    web.now += 30
    preview = web.post("/P/edit", {**form, "body": "four https://x.example", "preview": "1"})
    assert web.post("/P/edit", {**web.form_of(preview), "body": "four https://x.example"}).status_code == 303
    assert web.wiki.page("P").number == 2


def test_the_same_text_on_many_pages_waits(web: WikiClient) -> None:
    text = "Our village has a new well, and everybody is welcome to see it on Sunday at noon."
    statuses = [send(web, f"/Well{number}", f"{text} https://well.example").headers["Location"] for number in range(5)]
    assert [place.startswith("/-/held") for place in statuses] == [False, False, False, True, True]


def test_the_sites_question(web: WikiClient) -> None:
    policy = Policy(question="Which river?", answers=("Ems",))
    write_policy(web.wiki.rows, "", policy, by="Root", now_ms=1)
    assert "Which river?" in web.get("/P/edit").text
    assert "Which river?" in web.get("/P/comments").text
    assert "Which river?" not in web.signed_in("Mia").get("/P/edit").text
    refused = send(web, "/P", "four")
    assert "answer the question" in refused.text
    assert text_in(refused) == "four"
    assert send(web, "/P", "four", answer_question="ems").status_code == 303
    web.wiki.away = True
    assert web.get("/P/edit").status_code == 503


def test_settings_have_a_history_and_are_not_overwritten(web: WikiClient) -> None:
    rows = web.wiki.rows
    first = write_policy(rows, "", Policy(page_links=3), by="Root", now_ms=1)
    with pytest.raises(Exception, match="meanwhile"):
        write_policy(rows, "", Policy(), by="Eve", now_ms=2)
    write_policy(rows, first.revision, Policy(words=("x",)), by="Ada", now_ms=3)
    assert read_policy(rows).policy == Policy(words=("x",))
    assert [(one.by, one.policy.page_links) for one in policy_history(rows)] == [("Ada", 15), ("Root", 3)]


def test_edits_of_an_account_are_counted_until_it_is_trusted(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for number in range(TRUSTED_EDITS + 2):
        send(mia, "/P", f"edit {number}")
    row = web.wiki.rows.row(USERS, user_row("Mia"))
    assert row[EDITS] == b"%d" % TRUSTED_EDITS
    assert send(mia, "/P", FARM).headers["Location"].startswith("/-/held")
    web.now += TRUSTED_AGE_S
    assert send(mia, "/P", FARM).headers["Location"] == "/P"
    assert web.signed_in("Root", admin=True).get("/-/held").status_code == 200


def held_rows(web: WikiClient) -> list[bytes]:
    """The rows of texts, without those by which authors find them."""
    return [row for row in web.wiki.rows.data[SUGGESTIONS] if not row.startswith(b"of:")]


def test_what_waits_is_bounded_and_nothing_typed_is_lost(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert REVIEWS_OF_NETWORK < REVIEWS_MAX
    monkeypatch.setattr("wikka_port.editing.suggestions.REVIEWS_OF_NETWORK", 2)
    for number in range(2):
        assert send(web.other_visitor(), f"/Q{number}", f"{number}\n{FARM}").status_code == 303
    refused = send(web, "/P", FARM)
    assert refused.status_code == 429
    assert text_in(refused) == FARM
    assert len(held_rows(web)) == 2


def test_the_same_form_sent_twice_waits_once(web: WikiClient) -> None:
    form = {**web.form("/P/edit"), "body": FARM, "save": "1"}
    web.now += 60
    assert len({web.post("/P/edit", form).headers["Location"] for _ in range(2)}) == 1
    assert len(held_rows(web)) == 1
    section = send(web, "/P", "a section alone", section="s-none")
    assert section.status_code == 409


def test_watchers_learn_of_what_was_accepted_as_its_authors(web: WikiClient) -> None:
    """Nothing is told while it waits; then it is an edit or a comment of its author, of which he gets no notice."""
    ada, mia = web.signed_in("Ada"), web.signed_in("Mia")
    for browser in (ada, mia):
        browser.post("/P/watch", {**browser.form("/P/watch"), "do": "page"})
    edit = send(mia, "/P", f"one\n\ntwo\n\nthree\n\n{FARM}", note="links").headers["Location"]
    form = mia.form("/P/comments")
    shared_clock_of(mia, 60)
    comment = mia.post("/P/comments", {**form, "body": SPAM, "send": "1"}).headers["Location"]
    assert "/-/held?" in edit
    assert "/-/held?" in comment
    assert "There is no notice for you" in ada.get("/-/inbox").text
    root = web.signed_in("Root", admin=True)
    for place in (edit, comment):
        assert decide(root, place, "accept").status_code == 303
    text = ada.get("/-/inbox").text
    assert re.sub("<.*?>", "", text).count("Mia edited") == 1
    assert re.sub("<.*?>", "", text).count("Mia commented") == 1
    assert sorted(inbox(mia)) == ["new Your comment on P was accepted", "new Your edit of P was accepted"]
    assert inbox(root) == []


def inbox(browser: WikiClient) -> list[str]:
    found = re.findall(r'<li><span class="entry">(.*?)</span>\n', browser.get("/-/inbox").text, re.DOTALL)
    return [" ".join(re.sub("<.*?>", "", one).split()) for one in found]


def test_an_author_learns_of_the_decision_and_nobody_else_does(web: WikiClient) -> None:
    mia, eve, root = web.signed_in("Mia"), web.signed_in("Eve"), web.signed_in("Root", admin=True)
    refused = send(mia, "/P", FARM).headers["Location"]
    accepted = send(mia, "/Q", FARM).headers["Location"]
    withdrawn = send(mia, "/R", FARM).headers["Location"]
    assert send(web, "/S", FARM).status_code == 303, "a visitor's, which nobody can be told of"
    assert inbox(mia) == []
    mia.post("/-/held", {**mia.form_of(mia.get(withdrawn)), "withdraw": "1"})
    assert decide(root, refused, "refuse", said="No shops <b>").status_code == 303
    assert decide(root, accepted, "accept").status_code == 303
    assert decide(root, waiting(root)[0], "refuse", said="No.").status_code == 303
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.READ: "Olga"})
    assert sorted(inbox(mia)) == [
        "new Your edit of P was refused No shops &lt;b&gt;",
        "new Your edit of Q was accepted",
    ], "it is about his own text, whatever the page's rights are by now"
    assert refused.replace("&", "&amp;") in mia.get("/-/inbox").text
    for other in (eve, root):
        assert inbox(other) == []
    rows = web.wiki.rows.data[INBOX]
    assert [row.partition(b"\0")[0] for row in rows] == [b"mia", b"mia"], "what was withdrawn gives none"
    for row in list(rows):
        rows[b"eve" + row[3:]] = rows[row]
    assert inbox(eve) == [], "a notice about the text of somebody else says nothing"


def test_a_decision_is_made_once(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    place = send(mia, "/P", FARM).headers["Location"]
    form = root.form(place)
    one = web.wiki.suggestions.reviewed("P", place.rpartition("=")[2])
    assert one is not None
    assert root.post("/-/held", {**form, "refuse": "1", "said": "first"}).status_code == 303
    assert root.post("/-/held", {**form, "refuse": "1", "said": "second"}).status_code == 409
    assert not web.wiki.suggestions.decide(one, "refused", "third")
    assert inbox(mia) == ["new Your edit of P was refused first"]


def test_a_change_of_ones_own_comment_waits_as_a_new_one_does(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    web.wiki._now_ms = int(web.now * 1_000)
    for browser, place in ((mia, 1), (web, 2)):
        form = browser.form("/P/comments")
        assert browser.post("/P/comments", {**form, "body": f"Words {place}.", "send": "1"}).status_code == 303
        changed = browser.form(f"/P/comments?edit={place}")
        shared_clock_of(browser, 60)
        answer = browser.post("/P/comments", {**changed, "body": f"{SPAM} {place}", "send": "1"})
        held = answer.headers["Location"]
        assert held.startswith("/-/held?page=P&id=")
        shown = web.get("/P/comments").text
        assert f"Words {place}." in shown, "readers see it as it was"
        assert "pills.example" not in shown
        assert f"Words {place}." in re.sub("<.*?>", "", root.get(held).text), "beside the change"
        web.wiki._now_ms += 3_600_000
        web.now += 3_600
        assert decide(root, held, "accept").status_code == 303, "long after the 15 minutes, in which it was sent"
        page = web.wiki.page("P")
        assert page is not None
        assert page.comments.count == place, "it is no new one"
        text = web.wiki.comments.comment_at(page_key("P"), place, page.comments).text
        assert text == f"{SPAM} {place}"
        web.wiki.comments.change("P", b"", place, lambda one: replace(one, text="Seen."), allow=lambda _n, _r: None)
    assert inbox(mia) == ["new Your comment on P was accepted"]


def test_a_change_of_a_comment_of_somebody_else_does_not_wait(web: WikiClient) -> None:
    mia, eve = web.signed_in("Mia"), web.signed_in("Eve")
    web.wiki._now_ms = int(web.now * 1_000)
    mia.post("/P/comments", {**mia.form("/P/comments"), "body": "Words.", "send": "1"})
    form = eve.form("/P/comments")
    shared_clock_of(eve, 60)
    assert eve.post("/P/comments", {**form, "edit": "1", "body": SPAM, "send": "1"}).status_code == 409
    late = mia.form("/P/comments?edit=1")
    web.now += 3_600
    shared_clock_of(mia, 0)
    answer = mia.post("/P/comments", {**late, "body": SPAM, "send": "1"})
    assert (answer.status_code, SPAM in answer.text) == (409, True)
    assert waiting(web.signed_in("Root", admin=True)) == []


def test_the_settings_lead_to_ones_own_texts(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for path in ("/-/settings", "/-/watches", "/-/held"):
        assert '<a href="/-/held"' in mia.get(path).text
    assert "Sign out" not in web.get("/-/held").text, "a visitor without an account has no tabs"
