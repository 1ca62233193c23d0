"""Texts that antispam keeps: an author's own list, suggestions, and what programs send by the API."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import pytest

from tests.support.api_client import ApiScene
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.rows import Cells
from wikka_port.editing import suggestions
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.limits import SUGGESTED_BY_ONE
from wikka_port.names import page_key
from wikka_port.rights.rules import PageRights, Privilege

FARM = "\n".join(f"https://farm{n}.example/x" for n in range(20))


class Fallen(Exception):
    pass


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("P", "one\n\ntwo", author="Olga", base=0, owner="Olga")
    made.wiki.save("Lent", "one\n\ntwo", author="Olga", base=0, owner="Olga")
    made.wiki.rights.change("Lent", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    return made


def kept_edit(web: WikiClient, browser: WikiClient, path: str, body: str = FARM) -> str:
    form = browser.form(path + "/edit")
    web.now += 60
    browser.now = web.now
    return browser.post(path + "/edit", {**form, "body": body, "save": "1"}).headers["Location"]


def kept_suggestion(web: WikiClient, browser: WikiClient, body: str = FARM) -> str:
    form = browser.form("/Lent/suggestion")
    web.now += 60
    browser.now = web.now
    return browser.post("/Lent/suggestion", {**form, "body": body, "send": "1"}).headers["Location"]


def decide(root: WikiClient, place: str, button: str) -> int:
    return root.post("/-/held", {**root.form_of(root.get(place)), button: "1"}).status_code


def test_everybody_sees_a_list_of_the_own_texts_and_of_no_others(web: WikiClient) -> None:
    mia, visitor = web.signed_in("Mia"), web.other_visitor()
    places = [kept_edit(web, mia, "/P"), kept_edit(web, mia, "/New"), kept_suggestion(web, mia)]
    of_visitor = kept_edit(web, visitor, "/Other")
    listed = mia.get("/-/held")
    assert listed.status_code == 200
    links = [one.replace("&amp;", "&") for one in re.findall(r'href="(/-/held\?page=[^"]+)"', listed.text)]
    assert links == places[::-1], "the newest first"
    assert listed.text.count("waits</span>") == 3
    assert "Suggested change" in listed.text
    assert of_visitor.replace("&", "&amp;") in visitor.get("/-/held").text
    assert "/-/held?page" not in web.signed_in("Ben").get("/-/held").text
    root = web.signed_in("Root", admin=True)
    assert decide(root, places[0], "refuse") == 303
    assert decide(mia, places[1], "withdraw") == 303
    shown = mia.get("/-/held").text
    assert "refused</span>" in shown
    assert "taken back</span>" in shown
    assert 'href="/-/held"' in mia.get(places[0]).text, "each leads to the list"
    assert mia.post("/-/held", {**mia.form("/P/edit"), "accept": "1"}).status_code == 403


def test_who_never_sent_a_text_costs_no_search_for_any(web: WikiClient) -> None:
    kept_edit(web, web.signed_in("Mia"), "/P")
    stranger = web.other_visitor()
    stranger.get("/-/held")
    web.wiki.calls.clear()
    assert stranger.get("/-/held").status_code == 200
    assert "rows.scan" not in web.wiki.calls


def test_a_list_of_ones_own_texts_reads_those_alone(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else everybody who has a cookie of drafts could have thousands of texts read."""
    mia, visitor, ben = web.signed_in("Mia"), web.other_visitor(), web.signed_in("Ben")
    places = [kept_edit(web, mia, f"/Page_{number}") for number in range(3)]
    kept_edit(web, visitor, "/Other")
    owner = owner_of_account("Mia")
    found = web.wiki.suggestions.reviews_of([owner], 2)
    assert [one.review.page for one in found if one.review] == ["Page 2", "Page 1"], "the newest, up to the bound"
    stored, read = web.wiki.rows.rows, list[int]()

    def noted(table: bytes, rows: Collection[bytes], columns: Sequence[bytes] | None = None) -> dict[bytes, Cells]:
        read.extend([len(rows)] if table == suggestions.SUGGESTIONS else [])
        return stored(table, rows, columns)

    monkeypatch.setattr(web.wiki.rows, "rows", noted)
    for browser, texts in ((mia, 3), (visitor, 1), (ben, 0), (web.other_visitor(), 0)):
        web.wiki.calls.clear()
        read.clear()
        assert browser.get("/-/held").status_code == 200
        assert (sum(read), "rows.scan" in web.wiki.calls) == (texts, False)
    monkeypatch.undo()
    assert kept_edit(web, mia, "/Page_3") not in places
    form = mia.form_of(mia.get(places[0]))
    assert mia.post("/-/held", {**form, "withdraw": "1"}).status_code == 303
    assert mia.get("/-/held").text.count("/-/held?page") == 4


def test_the_difference_of_a_held_text_is_in_the_language_of_its_page(web: WikiClient) -> None:
    web.wiki.save("H", "שלום", author="Olga", base=0, owner="Olga", language="he")
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    edit, plain = kept_edit(web, mia, "/H"), kept_edit(web, mia, "/P")
    forms = {"/H/comments": {"send": "1"}, "/Nouvelle/edit": {"save": "1", "language": "fr"}}
    begun = {path: {**mia.form(path), "body": FARM, **fields} for path, fields in forms.items()}
    web.now += 60
    mia.now = web.now
    comment, new = (mia.post(path, form).headers["Location"] for path, form in begun.items())
    for place, shown in ((edit, ' lang="he"'), (comment, ' lang="he"'), (new, ' lang="fr"'), (plain, "")):
        assert f"<tbody{shown}>" in root.get(place).text, place
        assert f"<tbody{shown}>" in mia.get(place).text, place
    web.wiki.rights.change("H", PageRights("Olga"), "Olga", {Privilege.READ: "Olga"})
    web.wiki.clock_s += 5
    for place in (edit, comment):
        assert "<tbody>" in mia.get(place).text, "the language of a page that one may not read is not said"


def test_a_form_that_is_sent_again_later_is_listed_once_at_its_new_time(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    kept_edit(web, mia, "/Old")
    form = {**mia.form("/P/edit"), "body": FARM, "save": "1"}
    for _ in range(2):
        web.now += 60
        mia.now = web.now
        assert mia.post("/P/edit", form).status_code == 303
    newest = web.wiki.suggestions.reviews_of([owner_of_account("Mia")], 2)
    assert [one.review.page for one in newest if one.review] == ["P", "Old"], "two texts, not one twice"
    kept_edit(web, mia, "/New")
    found = web.wiki.suggestions.reviews_of([owner_of_account("Mia")])
    assert [one.review.page for one in found if one.review] == ["New", "P", "Old"]


@pytest.mark.parametrize("writes", [0, 1])
def test_a_crash_while_a_text_is_kept_leaves_none_that_its_author_does_not_find(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    mia, put, left = web.signed_in("Mia"), web.wiki.rows.put, [writes]
    form = {**mia.form("/P/edit"), "body": FARM, "save": "1"}
    web.now += 60
    mia.now = web.now

    def fall(table: bytes, row: bytes, cells: Cells) -> None:
        if table == suggestions.SUGGESTIONS:
            if not left[0]:
                raise Fallen
            left[0] -= 1
        put(table, row, cells)

    monkeypatch.setattr(web.wiki.rows, "put", fall)
    assert mia.post("/P/edit", form).status_code == 500
    monkeypatch.undo()
    assert (web.wiki.suggestions.waiting(), web.wiki.suggestions.reviews_of([owner_of_account("Mia")])) == ([], [])
    assert mia.post("/P/edit", form).status_code == 303
    assert web.wiki.suggestions.waiting() == web.wiki.suggestions.reviews_of([owner_of_account("Mia")]) != []


def test_a_suggestion_under_review_is_none_until_it_is_accepted(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    place = kept_suggestion(web, mia)
    assert place.startswith("/-/held?page=Lent")
    assert web.wiki.suggestions.of("Lent") == []
    assert "A suggested change under review" in mia.get(place).text
    assert 'action="/Lent/suggestion"' in mia.get(place).text, "its author can change it"
    root = web.signed_in("Root", admin=True)
    assert "Suggested change" in root.get("/-/held").text
    assert decide(root, place, "accept") == 303
    (one,) = web.wiki.suggestions.of("Lent")
    assert (one.who, one.base) == ("Mia", 1)
    assert web.wiki.suggestions.one("Lent", one.id).text == FARM
    assert web.wiki.page("Lent").number == 1
    assert 'name="accept"' not in root.get(place).text
    assert len(web.wiki.suggestions.of("Lent")) == 1


def test_a_suggestion_that_waits_for_a_writer_is_no_text_under_review(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    kept_suggestion(web, mia, "one\n\nmore")
    (one,) = web.wiki.suggestions.of("Lent")
    assert web.wiki.suggestions.waiting() == []
    for browser in (mia, root, web):
        assert browser.get(f"/-/held?page=Lent&id={one.id}").status_code == 404


def test_a_change_under_review_shows_no_comment_of_another_page(web: WikiClient) -> None:
    """The form has the key of a history; that of a page which the author may not read showed that page's comments."""
    olga, mia, root = web.signed_in("Olga"), web.signed_in("Mia"), web.signed_in("Root", admin=True)
    for browser, page, text in ((olga, "/Lent", "a quokka"), (mia, "/P", "my words")):
        form = browser.form(f"{page}/comments")
        assert browser.post(f"{page}/comments", {**form, "body": text, "send": "1"}).status_code == 303
    rights = web.wiki.page("Lent").rights
    web.wiki.rights.change("Lent", rights, "Olga", {Privilege.READ: "Olga", Privilege.COMMENT_READ: "Olga"})
    form = mia.form("/P/comments?edit=1")
    web.now += 60
    mia.now = web.now
    for history, former in ((page_key("Lent").decode(), None), (form["history"], "my words")):
        changed = {**form, "history": history, "body": f"{FARM}\n{history}", "send": "1"}
        place = mia.post("/P/comments", changed).headers["Location"]
        assert place.startswith("/-/held?page=P")
        shown = mia.get(place).text
        assert "quokka" not in shown
        assert former is None or former in shown
        assert decide(root, place, "accept") == (303 if former else 409)
        assert "quokka" not in root.get("/P/comments").text


def test_a_crash_before_the_decision_suggests_once(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    place = kept_suggestion(web, mia)
    (held,) = web.wiki.suggestions.waiting()
    assert decide(root, place, "accept") == 303
    whole = web.wiki.suggestions.reviewed("Lent", held.id)
    assert whole is not None
    assert whole.review is not None
    web.wiki.suggestions.decide(whole, "waiting")  # as if the decision had not been noted
    for number in range(SUGGESTED_BY_ONE - 1):
        kept_suggestion(web, mia, f"one\n\ntwo {number}")
    assert decide(root, place, "accept") == 303, "it is no further one"
    assert len(web.wiki.suggestions.of("Lent")) == SUGGESTED_BY_ONE


def test_an_accepted_suggestion_has_the_bounds_and_rights_of_every_other(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    place = kept_suggestion(web, mia)
    for number in range(SUGGESTED_BY_ONE):
        kept_suggestion(web, mia, f"one\n\ntwo {number}")
    assert len(web.wiki.suggestions.of("Lent")) == SUGGESTED_BY_ONE
    assert decide(root, place, "accept") == 409
    for one in web.wiki.suggestions.of("Lent"):
        web.wiki.suggestions.delete_suggestion("Lent", one.id)
    root.post("/-/blocks", {**root.form("/-/blocks"), "target": "Mia", "until": "", "add": "1"})
    web.wiki.clock_s += 1
    assert decide(root, place, "accept") == 409, "its author is blocked by now"
    assert web.wiki.suggestions.of("Lent") == []


def test_a_program_learns_where_its_edit_waits_and_sends_it_once() -> None:
    scene = ApiScene()
    rita = scene.program("Rita")
    kept = rita.save("Farm", FARM)
    assert kept.status_code == 202
    found = kept.get_json()
    assert found["page"] == "Farm"
    assert any("20" in reason for reason in found["reasons"])
    assert kept.headers["Location"] == found["url"]
    assert rita.get("/page", name="Farm").status_code == 404
    assert rita.save("Farm", FARM).get_json()["id"] == found["id"]
    (held,) = scene.wiki.suggestions.waiting()
    assert (held.who, held.signed) == ("Rita", "key")
    root = scene.web.signed_in("Root", admin=True)
    place = "/-/held?" + found["url"].partition("?")[2]
    assert decide(root, place, "accept") == 303
    page = scene.wiki.page("Farm")
    assert (page.body, page.author, page.signed) == (FARM, "Rita", "key")
    assert scene.program("Ada").save("Root farm", FARM).status_code == 201, "an administrator is not judged"


def test_a_program_may_hold_a_comment_and_changes_one_into_spam_only_under_review() -> None:
    scene = ApiScene()
    scene.wiki.save("P", "one", author="Olga", base=0)
    rita = scene.program("Rita")

    def comment(text: str) -> tuple[int, dict[str, object]]:
        sent = rita.call("POST", "/page/comments", query_string={"name": "P"}, json={"text": text, "id": "once"})
        return sent.status_code, sent.get_json()

    status, found = comment(FARM)
    assert status == 202
    assert comment(FARM)[1]["id"] == found["id"]
    assert len(scene.wiki.suggestions.waiting()) == 1
    root = scene.web.signed_in("Root", admin=True)
    assert decide(root, "/-/held?" + str(found["url"]).partition("?")[2], "accept") == 303
    assert scene.wiki.page("P").comments.count == 1
    other = {"text": FARM.replace("farm", "other")}
    any_state = {"If-Match": "*"}
    changed = rita.call("PUT", "/page/comment", query_string={"name": "P", "number": 1}, json=other, headers=any_state)
    assert changed.status_code == 202
    read = rita.call("GET", "/page/comments", query_string={"name": "P"}).get_json()
    assert [one["text"] for one in read["comments"]] == [FARM], "readers see the old text meanwhile"
    assert len(scene.wiki.suggestions.waiting()) == 1


def test_too_many_texts_are_refused_and_a_name_that_no_page_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ApiScene()
    rita = scene.program("Rita")
    monkeypatch.setattr("wikka_port.editing.suggestions.REVIEWS_OF_NETWORK", 1)
    assert rita.save("Farm", FARM).status_code == 202
    late = rita.save("Farm two", FARM)
    assert late.status_code == 429
    assert int(late.headers["Retry-After"]) > 0
    assert rita.save("Farm", FARM).status_code == 202, "one that waits already is no further one"


def anew(web: WikiClient, browser: WikiClient, place: str, path: str, body: str, button: str) -> str:
    """Change a text under review by the button of its page, and send it; return where the answer leads."""
    editor = browser.post(path, {**browser.form_of(browser.get(place)), "preview": "1"})
    web.now += 60
    browser.now = web.now
    return browser.post(path, {**browser.form_of(editor), "body": body, button: "1"}).headers["Location"]


def test_an_edit_that_its_author_saves_anew_waits_no_longer(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    other = kept_edit(web, mia, "/P", f"Other\n{FARM}")
    place = kept_edit(web, mia, "/P")
    assert anew(web, mia, place, "/P/edit", f"Fewer\n{FARM}", "save") == place, "it is held again, in its place"
    assert anew(web, mia, place, "/P/edit", "one\n\ntwo, and no link", "save") == "/P"
    assert "newer text in its place" in mia.get(place).text
    assert "replaced by a newer text</span>" in mia.get("/-/held").text
    assert [one.id for one in web.wiki.suggestions.waiting()] == [other[-16:]], "what another form sent waits"
    form = {**root.form(other), "page": "P", "id": place[-16:], "accept": "1"}
    assert root.post("/-/held", form).status_code == 409, "nobody accepts it any more"
    assert web.wiki.page("P").body == "one\n\ntwo, and no link"
    assert "was refused" not in mia.get("/-/inbox").text


def test_a_refusal_stays_one_after_its_author_has_saved_a_better_text(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    place = kept_edit(web, mia, "/P")
    assert decide(root, place, "refuse") == 303
    assert anew(web, mia, place, "/P/edit", "one\n\ntwo, and no link", "save") == "/P"
    assert "It was refused." in mia.get(place).text


def test_a_form_supersedes_no_text_of_somebody_else(web: WikiClient) -> None:
    place = kept_edit(web, web.signed_in("Mia"), "/P")
    one = web.wiki.suggestions.reviewed("P", place[-16:])
    assert one is not None
    assert one.review is not None
    ben = web.signed_in("Ben")
    form = ben.form("/P/edit")
    web.now += 60
    ben.now = web.now
    answer = ben.post("/P/edit", {**form, "draft": one.review.form, "body": "Words.", "save": "1"})
    assert answer.headers["Location"] == "/P"
    assert len(web.wiki.suggestions.waiting()) == 1


def test_a_suggestion_that_its_author_sends_anew_waits_for_no_administrator(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    place = kept_suggestion(web, mia)
    assert anew(web, mia, place, "/Lent/suggestion", "one\n\nzwei", "send") == "/Lent/suggestion?sent=1"
    assert web.wiki.suggestions.waiting() == []
    assert len(web.wiki.suggestions.of("Lent")) == 1
    assert "newer text in its place" in mia.get(place).text


def test_a_newer_change_of_a_comment_supersedes_the_older_one(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)

    def sent(body: str, query: str = "") -> str:
        form = mia.form(f"/P/comments{query}")
        web.now += 20
        mia.now = web.now
        return mia.post("/P/comments", {**form, "body": body, "send": "1"}).headers["Location"]

    sent("Words.")
    first, second = sent(FARM, "?edit=1"), sent(f"{FARM} x", "?edit=1")
    assert first != second
    assert "newer text in its place" in mia.get(first).text
    assert [one.id for one in web.wiki.suggestions.waiting()] == [second[-16:]]
    sent("Better words.", "?edit=1")
    assert web.wiki.suggestions.waiting() == []
    assert "newer text in its place" in root.get(second).text
    held = sent(f"{FARM} y")
    sent("A comment of its own.")
    assert [one.id for one in web.wiki.suggestions.waiting()] == [held[-16:]], "it is another comment"
    assert anew(web, mia, held, "/P/comments", "No link.", "send").endswith("#c3")
    assert web.wiki.suggestions.waiting() == []


def test_texts_of_one_author_for_one_page_name_each_other(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    first, second = kept_edit(web, mia, "/P"), kept_edit(web, mia, "/P", f"Other\n{FARM}")
    kept_edit(web, mia, "/New")
    kept_edit(web, web.other_visitor(), "/P", f"A visitor\n{FARM}")
    own, seen = mia.get(second).text, root.get(second).text
    link = first.replace("&", "&amp;")
    assert (own.count(link), seen.count(link), own.count("page=P&amp;id=")) == (1, 1, 1)
    assert "Other texts of you for this page wait, too." in own
    assert "Other texts of its author for this page wait, too." in seen
    assert decide(mia, first, "withdraw") == 303
    assert "wait, too." not in mia.get(second).text
    assert "wait, too." not in mia.get(first).text
