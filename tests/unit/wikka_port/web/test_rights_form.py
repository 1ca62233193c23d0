"""The form of a page's rights: words, trying, mistakes, questions, two that change at once; claiming."""

from __future__ import annotations

from html import unescape

import pytest
from werkzeug.test import TestResponse

from tests.support import page_forms
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.directory import NameTaken
from wikka_port.caches import TtlCache
from wikka_port.names import page_key
from wikka_port.rights.rules import PageRights, Privilege, page_column
from wikka_port.schema import PAGES


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=100)
    made.wiki.save("P", "text", author="Ann", base=0, owner="Olga")
    made.wiki.save("Editors", "+Mia+Rita+", author="Ann", base=0)
    return made


def send(browser: WikiClient, button: str = "save", page: str = "/P", **fields: str) -> str:
    """What a browser does; the answer, or "" where it leads to the page."""
    answer = browser.post(f"{page}/acls", {**browser.form(f"{page}/acls"), "owner": "Olga", **fields, button: "1"})
    return "" if answer.status_code == 303 else f"{answer.status_code} {unescape(answer.text)}"


def test_lists_are_saved_and_explained(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    assert "Everybody may." in olga.get("/P/acls").text
    assert send(olga, own_read="1", read="Editors\r\n!*") == ""
    page = web.wiki.page("P")
    assert page.rights.lists == {Privilege.READ: "Editors\n!*"}
    assert page.owner == "Olga"
    text = olga.get("/P/acls").text
    assert "The group Editors (its 2 members) may. Nobody else may." in text
    assert "Olga, who owns the page, and administrators always may." in text
    assert "everybody may edit the page Editors, and so make anybody a member" in text
    assert web.get("/P").status_code == 403
    assert web.signed_in("Mia").get("/P").status_code == 200
    assert send(olga, read="Editors\n!*") == "", "without the mark the page has no list of its own"
    assert web.get("/P").status_code == 200
    audit = [cells for cells in web.wiki.rows.data[b"audit"].values() if cells[b"a:what"] == b"rights"]
    assert [(cells[b"a:user"], cells[b"a:note"]) for cells in audit] == [(b"Olga", b"P")] * 2


def test_members_of_a_group_whose_page_one_may_not_read_are_not_counted(web: WikiClient) -> None:
    olga, admin = web.signed_in("Olga"), web.signed_in("Root", admin=True)
    web.wiki.rights.change("Editors", PageRights(), "", {Privilege.READ: "Mia"})
    assert send(olga, own_read="1", read="Editors\nMia") == ""
    shown = unescape(olga.get("/P/acls").text)
    assert "The group Editors may. Mia may." in shown
    assert "members)" not in shown
    assert "The group Editors (its 2 members) may." in unescape(admin.get("/P/acls").text)


def test_try_as_shows_and_changes_nothing(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    web.signed_in("Mia")
    fields = {"own_read": "1", "read": "Editors", "own_write": "1", "write": "!*"}
    for who, read, hint in (("Mia", "yes", "line 1"), ("Nobody Known", "no", "no user of this name"), ("", "no", "")):
        answer = send(olga, "try", **fields, **{"as": who})
        assert f"Read the page: <strong>{read}</strong>" in answer, who
        assert "Edit the page: <strong>no</strong>" in answer
        assert hint in answer
        assert "Editors</textarea>" in answer, "what was typed is kept"
    assert web.wiki.page("P").rights == PageRights("Olga")


@pytest.mark.parametrize("with_shown", [True, False], ids=["our form", "a form of before"])
def test_a_list_that_is_typed_without_its_box_is_asked_about_never_dropped(web: WikiClient, with_shown: bool) -> None:
    olga = web.signed_in("Olga")
    form = {**olga.form("/P/acls"), "owner": "Olga"}
    if not with_shown:
        form = {key: value for key, value in form.items() if not key.startswith("shown_")}
    answer = olga.post("/P/acls", {**form, "read": "Olga\r\n", "save": "1"})
    assert answer.status_code == 400
    assert "You typed a list for: Read the page." in answer.text
    assert 'name="own_read" value="1" checked' in answer.text
    assert 'name="own_write" value="1">' in answer.text
    assert web.wiki.page("P").rights == PageRights("Olga")
    again = {**olga.form_of(answer), "owner": "Olga", "read": "Olga"}
    assert olga.post("/P/acls", {**again, "save": "1"}).status_code == 303, "taken back on purpose"
    assert web.wiki.page("P").rights.lists == {}
    again["revision"] = olga.form("/P/acls")["revision"]
    assert olga.post("/P/acls", {**again, "own_read": "1", "save": "1"}).status_code == 303
    assert web.wiki.page("P").rights.lists == {Privilege.READ: "Olga"}
    assert web.get("/P").status_code == 403


def test_lists_that_are_only_shown_are_not_asked_about(web: WikiClient) -> None:
    """A prefix has a list with line ends and spaces of its own, and it changes while the form is open."""
    olga = web.signed_in("Olga")
    rules = web.wiki.rights.change_rules("", {Privilege.READ: "# all\n  *  \n"}, web.wiki.rights.rules())
    form = {**olga.form("/P/acls"), "owner": "Olga"}
    web.wiki.rights.change_rules("", {Privilege.READ: "+"}, rules)
    shown = {key.removeprefix("shown_"): value for key, value in form.items() if key.startswith("shown_")}
    typed = {key: value.replace("\n", "\r\n") for key, value in shown.items()}
    assert olga.post("/P/acls", {**form, **typed, "save": "1"}).status_code == 303
    assert web.wiki.page("P").rights.lists == {}


def test_trying_counts_what_is_typed_and_says_so(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    answer = send(olga, "try", read="Olga")
    assert answer.startswith("200")
    assert "You typed a list for: Read the page." in answer
    assert "Read the page: <strong>no</strong>" in answer
    assert 'name="own_read" value="1" checked' in answer


def test_a_user_who_is_typed_is_tried_before_anything_is_saved(web: WikiClient) -> None:
    """Enter in the field of the user sends the form as the first button does, which saves."""
    olga = web.signed_in("Olga")
    web.signed_in("Mia")
    fields = {"own_read": "1", "read": "Olga", "as": "Mia"}
    form = olga.form("/P/acls")
    answer = olga.post("/P/acls", {**form, "owner": "Olga", **fields, "save": "1"})
    assert answer.status_code == 200
    assert "Nothing is saved yet" in answer.text
    assert "Read the page: <strong>no</strong>" in answer.text
    assert web.wiki.page("P").rights == PageRights("Olga")
    again = olga.post("/P/acls", {**olga.form_of(answer), "owner": "Olga", **fields, "save": "1"})
    assert again.status_code == 303
    assert web.wiki.page("P").rights.lists == {Privilege.READ: "Olga"}


def test_a_loss_that_was_not_asked_about_is_asked_about(web: WikiClient) -> None:
    """He was asked whether he may lose the page's rights, and gives away its reading, too, before he confirms."""
    olga = web.signed_in("Olga")
    web.signed_in("Mia")
    form = olga.form("/P/acls")
    asked = olga.post("/P/acls", {**form, "owner": "Mia", "save": "1"})
    assert 'name="confirm" value="change_rights"' in asked.text
    again = {**olga.form_of(asked), "owner": "Mia", "own_read": "1", "read": "Mia", "confirm": "change_rights"}
    answer = olga.post("/P/acls", again)
    assert answer.status_code == 200
    assert "you could no longer read this page, edit it, change its rights" in unescape(answer.text)
    assert web.wiki.page("P").owner == "Olga"


def test_a_mistake_is_named_beside_its_list(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    answer = send(olga, own_write="1", write="Ann\n!")
    assert answer.startswith("400")
    assert "A list has a mistake: Edit the page." in answer
    assert "Line 2: behind “!” stands nobody" in answer
    assert 'aria-describedby="wrong-write"' in answer
    assert "no user “Nemo”" in send(olga, owner="Nemo")
    assert web.wiki.page("P").rights == PageRights("Olga")


MOVED = {Privilege.READ: "*\r\n\r\n", Privilege.WRITE: " Ann, Bob\r\n+\r\n\0"}


@pytest.fixture
def moved(web: WikiClient) -> WikiClient:
    """A wiki whose page P has lists of an import, with a mistake and with line ends of their own."""
    before = web.wiki.page("P").rights
    web.wiki.rights.change("P", before, "Olga", MOVED, token="moved-1")
    web.signed_in("Mia")
    return web


def filled(answer: TestResponse, **fields: str) -> dict[str, str]:
    """All fields that a browser sends: with line ends of its own, and without the character NUL, which HTML has not."""
    [form] = [one for one in page_forms.read(answer.text)[0] if "own_read" in one.names()]
    ends = {key: value.replace("\r\n", "\n").replace("\n", "\r\n") for key, value in form.sent().items()}
    return {**{key: value.replace("\0", "\ufffd") for key, value in ends.items()}, "save": "1", **fields}


def fill(browser: WikiClient, **fields: str) -> str:
    answer = browser.post("/P/acls", filled(browser.get("/P/acls"), **fields))
    return "" if answer.status_code == 303 else f"{answer.status_code} {unescape(answer.text)}"


def cells_of_lists(web: WikiClient) -> dict[bytes, bytes]:
    cells = web.wiki.rows.data[PAGES][page_key("P")]
    return {column: cells[column] for column in map(page_column, MOVED)}


def test_an_owner_is_changed_beside_a_list_with_a_mistake(moved: WikiClient) -> None:
    root, before = moved.signed_in("Root", admin=True), cells_of_lists(moved)
    shown = unescape(root.get("/P/acls").text)
    assert 'id="wrong-write">Line 1: one name a line' in shown
    assert "It stays as it is until you change it." in shown
    assert "wrong-read" not in shown
    assert fill(root, owner="Mia") == ""
    assert (moved.wiki.page("P").owner, cells_of_lists(moved)) == ("Mia", before)


def test_a_list_is_changed_beside_one_with_a_mistake(moved: WikiClient) -> None:
    root, before = moved.signed_in("Root", admin=True), cells_of_lists(moved)
    assert fill(root, comment_post="Mia", own_comment_post="1") == ""
    assert moved.wiki.page("P").rights.lists == {**MOVED, Privilege.COMMENT_POST: "Mia"}
    assert cells_of_lists(moved) == before
    for refused in ("Ann, Bob", "Ann, Bob\r\n+\r\nMia"):
        answer = fill(root, write=refused, read="!")
        assert answer.startswith("400"), refused
        assert "A list has a mistake: Read the page, Edit the page." in answer
    assert fill(root, write="Ann\r\nBob") == ""
    assert moved.wiki.page("P").rights.lists == {
        Privilege.READ: MOVED[Privilege.READ],
        Privilege.WRITE: "Ann\nBob",
        Privilege.COMMENT_POST: "Mia",
    }


def test_a_list_that_was_typed_before_a_refusal_is_the_one_that_is_saved(moved: WikiClient) -> None:
    """The second form shows the typed list, as it showed the stored one before."""
    root = moved.signed_in("Root", admin=True)
    refused = root.post("/P/acls", filled(root.get("/P/acls"), owner="Nemo", write="Ann\r\nBob"))
    assert refused.status_code == 400
    assert root.post("/P/acls", filled(refused, owner="Mia")).status_code == 303
    assert moved.wiki.page("P").rights.lists == {**MOVED, Privilege.WRITE: "Ann\nBob"}


def test_a_page_with_a_mistaken_list_is_claimed(web: WikiClient) -> None:
    web.wiki.save("Free", "text", author="Ann", base=0)
    web.wiki.rights.change("Free", PageRights(), "", MOVED, token="moved-1")
    rita = web.signed_in("Rita")
    assert rita.post("/Free/claim", rita.form("/Free/claim")).status_code == 303
    assert (web.wiki.page("Free").owner, web.wiki.page("Free").rights.lists) == ("Rita", MOVED)


def test_giving_a_page_away_asks_first(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    web.signed_in("Mia")
    fields = {"owner": "Mia", "own_read": "1", "read": "Mia"}
    answer = send(olga, **fields)
    assert "you could no longer read this page, edit it, change its rights" in answer
    assert web.wiki.page("P").owner == "Olga"
    assert send(olga, "confirm", **fields) == ""
    assert web.wiki.page("P").owner == "Mia"
    assert olga.get("/P").status_code == 403


def test_of_two_that_change_at_once_the_second_is_asked(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    root = web.signed_in("Root", admin=True)
    form = olga.form("/P/acls")
    assert send(root, own_read="1", read="+") == ""
    answer = olga.post("/P/acls", {**form, "owner": "Olga", "own_read": "1", "read": "*", "save": "1"})
    assert answer.status_code == 409
    assert "Somebody else changed the rights" in answer.text
    assert web.wiki.page("P").rights.lists == {Privilege.READ: "+"}
    fields = {key: value for key, value in form.items() if key != "revision"}
    fields["revision"] = web.wiki.page("P").rights.revision.decode()
    again = olga.post("/P/acls", {**fields, "owner": "Olga", "own_read": "1", "read": "*", "save": "1"})
    assert again.status_code == 303


def test_a_form_from_elsewhere_changes_nothing(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    for page in ("acls", "claim"):
        answer = olga.post(f"/P/{page}", {"own_read": "1", "read": "!*", "save": "1"})
        assert answer.status_code == 403
    assert web.wiki.page("P").rights == PageRights("Olga")


def test_claiming(web: WikiClient) -> None:
    web.wiki.save("Free", "text", author="Ann", base=0)
    rita = web.signed_in("Rita")
    assert 'href="/Free/claim"' in rita.get("/Free").text
    assert 'href="/Free/claim"' not in web.get("/Free").text
    assert rita.post("/Free/claim", rita.form("/Free/claim")).status_code == 303
    assert web.wiki.page("Free").owner == "Rita"
    assert "belongs to" in web.get("/Free").text
    assert rita.get("/Free/claim").status_code == 403, "it has an owner"
    assert web.wiki.rights.rules().is_open, "an owner is no list"
    rita.save("/Free", "changed")
    assert web.wiki.page("Free").owner == "Rita", "an edit does not take it away"


def test_a_group_is_read_again_within_a_second(web: WikiClient) -> None:
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.READ: "Editors"})
    mia, carl = web.signed_in("Mia"), web.signed_in("Carl")
    assert (mia.get("/P").status_code, carl.get("/P").status_code) == (200, 403)
    web.wiki.save("Editors", "+Carl+", author="Ann", base=1)
    web.wiki.clock_s += 1
    assert (mia.get("/P").status_code, carl.get("/P").status_code) == (403, 200)
    with pytest.raises(NameTaken):
        web.signed_in("editors")  # he would have the rights of the group


def test_a_page_of_a_users_name_is_no_group(web: WikiClient) -> None:
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.READ: "Mia"})
    mia, carl = web.signed_in("Mia"), web.signed_in("Carl")
    web.wiki.save("Mia", "+Carl+", author="Carl", base=0)
    assert (mia.get("/P").status_code, carl.get("/P").status_code) == (200, 403)


def test_a_store_that_is_away_lets_nobody_in(web: WikiClient) -> None:
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.READ: "Editors"})
    web.wiki.away = True
    assert web.get("/P").status_code == 503
    assert web.get("/-/pageindex").status_code == 503
    assert web.get("/P/acls").status_code == 503


def test_answers_kept_for_everybody_are_made_anew_after_a_change_of_rights(web: WikiClient) -> None:
    """The number of pages is found once for all visitors, and kept here for ever."""
    memory = TtlCache(lambda: web.wiki.count_pages(), 1e9, lambda: 0.0, of=web.wiki.rights.rules)
    rights = web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.READ: "+"})
    kept = memory.get()
    web.wiki.save("Later", "text", author="Ann", base=0)
    assert memory.get() == kept
    web.wiki.rights.change("P", rights, "Olga", {Privilege.READ: "*"})
    assert memory.get() == kept + 1
