"""Texts that antispam keeps: an author's own list, suggestions, and what programs send by the API."""

from __future__ import annotations

import re

import pytest

from tests.support.api_client import ApiScene
from tests.support.wiki_client import WikiClient
from wikka_port.editing import suggestions
from wikka_port.limits import SUGGESTED_BY_ONE
from wikka_port.names import page_key
from wikka_port.request_queues import PLACE_KEY
from wikka_port.rights.rules import PageRights, Privilege

FARM = "\n".join(f"https://farm{n}.example/x" for n in range(20))


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


class QuickPlace:
    """The place of a request in the quick lane, which notes where it is moved."""

    queue = "quick"
    has_arriving_body = False

    def __init__(self) -> None:
        self.moved: list[str] = []

    def restart(self, queue: str, full: type[Exception]) -> None:
        self.moved.append(queue)


def test_a_long_search_for_ones_own_texts_goes_to_the_slow_lane(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggestions, "LISTED_QUICK", 2)
    mia = web.signed_in("Mia")
    for number, lanes in ((1, []), (2, []), (3, ["slow"])):
        kept_edit(web, mia, f"/Page_{number}")
        place = QuickPlace()
        assert mia.get("/-/held", environ_base={PLACE_KEY: place}).status_code == 200
        assert place.moved == lanes, number


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
    assert decide(root, place, "accept") == 303
    assert len(web.wiki.suggestions.of("Lent")) == 1


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
