"""Comments as visitors write, read, answer, change and remove them; who may do what."""

from __future__ import annotations

import re

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient
from wikka_port.accounts.audit import Audit
from wikka_port.comments.comment_rows import EDITABLE_MS
from wikka_port.comments.threads import ORDERS
from wikka_port.limits import COMMENT_CHARS_MAX
from wikka_port.names import page_key
from wikka_port.rights.rules import PageRights, Privilege

PATH = "/Home/comments"


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.now = 1_750_000_000.0  # the time of what is saved
    made.wiki.save("Home", "A text.", author="Ann", base=0, owner="Owner")
    return made


def send(web: WikiClient, text: str, query: str = "", path: str = PATH, **fields: str) -> TestResponse:
    form = web.form(path + query)
    return web.post(path, {**form, "body": text, "send": "1", **fields})


def texts(web: WikiClient, path: str = PATH) -> list[str]:
    return re.findall(r'comment-text"[^>]*>\s*<p>(.*?)</p>', web.get(path).text)


def test_a_comment_is_written_and_read(web: WikiClient) -> None:
    assert "Write a comment" in web.get("/Home").text
    answer = send(web, "It **is** so. <script>alert(1)</script>")
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"{PATH}?at=1#c1"
    assert texts(web) == ["It <strong>is</strong> so. &lt;script&gt;alert(1)&lt;/script&gt;"]
    page = web.get("/Home").text
    assert "1 comment<" in page
    assert "It <strong>is" not in page
    assert "It <strong>is" in web.get("/Home?comments=threaded").text
    assert re.search(r'class="author">Visitor [0-9a-f]{4}<', web.get(PATH).text)


def test_the_same_form_sent_twice_adds_one_comment(web: WikiClient) -> None:
    form = {**web.form(PATH), "body": "Once.", "send": "1"}
    assert [web.post(PATH, form).headers["Location"] for _ in range(3)] == [f"{PATH}?at=1#c1"] * 3
    send(web, "Another.")
    web.post(PATH, form)
    assert texts(web) == ["Once.", "Another."]


def test_answers_stand_below_what_they_answer_ten_deep(web: WikiClient) -> None:
    send(web, "1")
    for number in range(1, 12):
        send(web, str(number + 1), f"?answer={number}")
    send(web, "another thread")
    send(web, "late answer", "?answer=1")
    levels = re.findall(r'<li id="c(\d+)" class="level-(\d+)">', web.get(PATH).text)
    assert levels == [*((str(n), str(min(n, 10))) for n in range(1, 13)), ("14", "2"), ("13", "1")]
    orders = {order: re.findall(r'<li id="c(\d+)"', web.get(f"{PATH}?order={order}").text) for order in ORDERS}
    assert orders["oldest"] == [str(n) for n in range(1, 15)]
    assert orders["newest"] == orders["oldest"][::-1]


def test_nothing_typed_is_lost(web: WikiClient) -> None:
    form = {**web.form(PATH), "body": "Typed & kept", "send": "1"}
    kept = "Typed &amp; kept</textarea>"

    def refused(status: int, **changed: str) -> None:
        answer = web.post(PATH, {**form, **changed})
        assert answer.status_code == status, answer.text
        assert kept in answer.text or "body" in changed

    refused(403, csrf="")
    refused(403, **{"as": "Rita"})
    refused(400, body="  ")
    refused(413, body="x" * (COMMENT_CHARS_MAX + 1))
    refused(409, answer="7")
    web.wiki.rights.change("Home", PageRights("Owner"), "Owner", {Privilege.COMMENT_POST: "+"})
    refused(403)
    web.wiki.rights.change("Home", web.wiki.page("Home").rights, "Owner", {Privilege.READ: "+"})
    web.wiki.clock_s += 10
    refused(403)
    web.wiki.away = True
    refused(503)
    web.wiki.away = False
    del web.wiki._pages["Home"]
    refused(404)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_form_with_the_history_of_another_page_shows_nothing_of_it(web: WikiClient, is_deleted: bool) -> None:
    """The key of a page is a digest of its name, so everybody can send that of a page which he may not read."""
    web.wiki.save("Secret", "A text.", author="Owner", base=0, owner="Owner")
    owner = web.signed_in("Owner")
    send(owner, "a quokka", path="/Secret/comments")
    send(owner, "two quokkas", "?answer=1", path="/Secret/comments")
    web.wiki.rights.change("Secret", PageRights("Owner"), "Owner", {Privilege.READ: "+", Privilege.COMMENT_READ: ""})
    if is_deleted:
        owner.post("/Secret/delete", {**owner.form("/Secret/delete"), "delete": "1"})
    send(web, "one")
    send(web, "two")
    for changed in (
        {},
        {"answer": "2"},
        {"edit": "2"},
        {"remove": "2"},
        {"restore": "1"},
        {"preview": "1", "answer": "1"},
    ):
        answer = send(web, "harmless", history=page_key("Secret").decode(), **changed)
        assert answer.status_code in {200, 409}, changed
        assert "quokka" not in answer.text, changed
        assert texts(web) == ["one", "two"]


def test_too_many_comments_wait(web: WikiClient) -> None:
    answers = [send(web, f"text {number}") for number in range(45)]
    assert [one.status_code for one in answers].count(303) == 40
    assert "text 44</textarea>" in answers[-1].text
    assert int(answers[-1].headers["Retry-After"]) > 0


def test_an_author_changes_his_comment_for_15_minutes(web: WikiClient) -> None:
    rita, other = web.signed_in("Rita"), web.signed_in("Other")
    send(rita, "first")
    assert "Change<" in rita.get(PATH).text
    assert "Change<" not in other.get(PATH).text
    assert "Change<" not in web.get(PATH).text
    time_ms = web.wiki.comments.find_commented("Home").head.at_ms
    for now_ms, status in ((time_ms + EDITABLE_MS - 1, 303), (time_ms + EDITABLE_MS, 409)):
        web.now = now_ms / 1000
        rita.now = now_ms / 1000
        form = {**rita.form(f"{PATH}?edit=1"), "edit": "1", "body": f"edit {status}", "send": "1"}
        assert rita.post(PATH, form).status_code == status
    assert texts(web) == ["edit 303"]
    assert "changed" in web.get(PATH).text
    web.now = time_ms / 1000
    assert send(other, "mine", edit="1").status_code == 409
    assert texts(web) == ["edit 303"]


def test_a_visitor_without_an_account_is_known_by_his_browser(web: WikiClient) -> None:
    send(web, "first")
    web.now = web.wiki.comments.find_commented("Home").head.at_ms / 1000
    assert "Change<" in web.get(PATH).text
    assert "Change<" not in web.other_visitor().get(PATH).text
    assert send(web.other_visitor(), "no", edit="1").status_code == 409
    assert send(web, "yes", "?edit=1").status_code == 303
    assert texts(web) == ["yes"]


def test_removed_comments_keep_their_thread_and_can_come_back(web: WikiClient) -> None:
    rita, owner, other = web.signed_in("Rita"), web.signed_in("Owner"), web.signed_in("Other")
    send(rita, "asks")
    send(other, "answers", "?answer=1")
    assert send(other, "", remove="1").status_code == 409
    assert send(owner, "", remove="1").status_code == 303
    assert texts(web) == ["answers"]
    assert "This comment was deleted." in web.get(PATH).text
    assert "asks" not in web.get(PATH).text
    assert "1 comment<" in web.get("/Home").text
    assert send(rita, "", restore="1").status_code == 409, "the owner removed it"
    assert send(owner, "", restore="1").status_code == 303
    assert send(rita, "", remove="1").status_code == 303
    assert send(rita, "", restore="1").status_code == 303
    assert send(other, "", remove="2").status_code == 303
    assert texts(web) == ["asks"]
    assert "This comment was deleted." not in web.get(PATH).text, "it keeps no thread"
    assert send(rita, "late", "?answer=2", answer="2").status_code == 409


@pytest.mark.parametrize("privilege", [Privilege.READ, Privilege.COMMENT_READ])
def test_without_the_right_nothing_of_the_comments_is_shown(web: WikiClient, privilege: Privilege) -> None:
    send(web, "WORTGEHEIM")
    web.wiki.rights.change("Home", PageRights("Owner"), "Owner", {privilege: "+"})
    web.wiki.clock_s += 10
    for path in (PATH, "/Home", "/Home?comments=threaded", f"{PATH}?at=1", f"{PATH}?edit=1"):
        page = web.get(path).text
        assert "WORTGEHEIM" not in page
        assert "1 comment<" not in page
    assert web.get(PATH).status_code == 403
    assert texts(web.signed_in("Rita")) == ["WORTGEHEIM"]
    suspended = web.signed_in("Suspended", status="suspended")
    assert suspended.get(PATH).status_code == 403


def test_a_page_may_hide_its_comments_and_a_comment_runs_no_action(web: WikiClient) -> None:
    web.wiki.save("Home", "A text. {{nocomments}}", author="Ann", base=1)
    send(web, '{{include page="Home"}} {{searchform}} {{color c="red" text="red"}} ======Head====== [[#x]]')
    assert "comment" not in web.get("/Home").text.lower().partition("<main")[2]
    page = web.get(PATH).text.partition("<main")[2]
    assert "<form" not in page.partition('id="write"')[0]
    assert "A text." not in page
    assert "red" in page
    assert "<h1" not in page.partition('class="comments"')[2]


def test_wikkawikis_addresses_show_comments(web: WikiClient) -> None:
    for text in ("first", "second"):
        send(web, text)
    for typed, expected in (("1", ["1", "2"]), ("2", ["2", "1"]), ("3", ["1", "2"]), ("0", []), ("x", [])):
        assert re.findall(r'<li id="c(\d)"', web.get(f"/Home?show_comments={typed}").text) == expected


def test_a_preview_adds_nothing(web: WikiClient) -> None:
    page = web.post(PATH, {**web.form(PATH), "body": "**so**", "preview": "1"}).text
    assert "<strong>so</strong>" in page
    assert "**so**</textarea>" in page
    assert web.wiki.comments.find_commented("Home").head.number == 0


def test_an_action_with_a_wrong_argument_is_a_note_in_its_comment_alone(web: WikiClient) -> None:
    form = web.form("/Home/comments")
    body = 'Before {{color text="x" c="red;background:url(x)"}} after {{color text="y" c="nope"}}'
    preview = web.post("/Home/comments", {**form, "body": body, "preview": "1"})
    assert preview.status_code == 200
    web.post("/Home/comments", {**form, "body": body, "send": "1"})
    for path in ("/Home/comments", "/Home", "/-/recentcomments"):
        answer = web.get(path)
        assert answer.status_code == 200, path
    assert "is no colour" in web.get("/Home/comments").text
    assert "after" in web.get("/Home/comments").text


def test_a_form_that_comes_again_with_another_text_loses_neither(web: WikiClient) -> None:
    """A browser that goes back shows the form that was sent, with its id."""
    form = {**web.form(PATH), "send": "1"}
    assert web.post(PATH, {**form, "body": "First."}).status_code == 303
    again = web.post(PATH, {**form, "body": "Second & other."})
    assert again.status_code == 409
    assert "Second &amp; other.</textarea>" in again.text
    assert "comment 1 has the text" in again.text
    assert texts(web) == ["First."]
    own = {**web.form_of(again), "body": "Second & other.", "send": "1"}
    assert [web.post(PATH, own).headers["Location"] for _ in range(2)] == [f"{PATH}?at=2#c2"] * 2
    assert texts(web) == ["First.", "Second &amp; other."]


def test_a_refusal_between_two_tries_adds_no_comment_twice(web: WikiClient) -> None:
    form = {**web.form(PATH), "body": "Once.", "send": "1"}
    assert web.post(PATH, form).status_code == 303, "and its answer is lost"
    refused = web.post(PATH, {**form, "csrf": ""})
    assert refused.status_code == 403
    third = web.post(PATH, {**web.form_of(refused), "body": "Once.", "send": "1"})
    assert third.headers["Location"] == f"{PATH}?at=1#c1"
    assert texts(web) == ["Once."]


def test_a_change_that_one_may_not_make_has_no_form(web: WikiClient) -> None:
    rita, other = web.signed_in("Rita"), web.signed_in("Other")
    send(rita, "hers")
    web.now = web.wiki.comments.find_commented("Home").head.at_ms / 1000
    for query in ("edit", "remove"):
        shown = other.get(f"{PATH}?{query}=1")
        assert (shown.status_code, "Only its author can change a comment." in shown.text) == (409, True)
        assert "hers</textarea>" not in shown.text
        assert f'name="{query}"' not in shown.text
        assert "Write a comment" in shown.text
        assert rita.get(f"{PATH}?{query}=1").status_code == 200
    assert other.get(f"{PATH}?edit=7").status_code == 404
    assert send(rita, "", remove="1").status_code == 303
    assert rita.get(f"{PATH}?restore=1").status_code == 200
    assert other.get(f"{PATH}?restore=1").status_code == 404
    send(rita, "another")
    web.now += EDITABLE_MS / 1000
    late = rita.get(f"{PATH}?edit=2")
    assert (late.status_code, "Write another one instead." in late.text) == (409, True)


def test_the_audit_has_what_others_than_its_author_do_with_a_comment(web: WikiClient) -> None:
    rita, owner = web.signed_in("Rita"), web.signed_in("Owner")
    send(rita, "hers")
    for browser, query in ((rita, "remove"), (rita, "restore"), (owner, "remove"), (owner, "remove")):
        assert send(browser, "", **{query: "1"}).status_code == 303
    assert send(owner, "", restore="1").status_code == 303
    noted = [(one.what, one.user, one.by, one.note) for one in Audit(web.wiki.rows, lambda: 0).recent(9)]
    assert sorted(noted) == [
        ("delete comment", "Rita", "Owner", "Home#c1"),
        ("restore comment", "Rita", "Owner", "Home#c1"),
    ]
