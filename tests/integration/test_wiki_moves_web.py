"""Renaming, deleting, bringing back, purging, hiding and taking back, by the forms of a wiki on a store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stored_wiki import stored_wiki, wait_for_jobs
from tests.support.wiki_client import WikiClient
from wikka_port import link_index
from wikka_port.accounts.audit import Audit
from wikka_port.accounts.tables import SITE
from wikka_port.consistency import check
from wikka_port.folder_format import ROW
from wikka_port.markup.links import names_linked
from wikka_port.moving.jobs import LINKS, Jobs, new_job
from wikka_port.moving.mover import By
from wikka_port.moving.runner import resume
from wikka_port.pages import Page, Saved, StoreUnavailable, clock_ms
from wikka_port.rights.moving import GuardedMoves
from wikka_port.rights.rules import PageRights, Privilege


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WikiClient]:
    with stored_wiki(tmp_path) as wiki:
        yield WikiClient(wiki, edit_burst=10_000)
        wait_for_jobs()


def save(web: WikiClient, name: str, body: str, author: str = "Ann", owner: str = "") -> None:
    page = web.wiki.page(name)
    web.wiki.save(name, body, author=author, base=page.number if page else 0, owner=owner, signed="account")


def text(web: WikiClient, name: str) -> str | None:
    page = web.wiki.page(name)
    return None if page is None else page.body


def page_of(web: WikiClient, name: str) -> Page:
    page = web.wiki.page(name)
    assert page is not None
    return page


def test_a_rename_leads_the_links_that_its_author_may_edit_and_one_undo_takes_all_back(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for number in range(3):
        save(web, f"Linking {number}", f"{number}: [[Old name]] and %%[[Old name]]%%")
    save(web, "Shut", "[[Old name]]")
    web.wiki.rights.change("Shut", PageRights(), "", {Privilege.WRITE: "Olga"})
    save(web, "Old name", "one [[Old name]]")
    save(web, "Old name/Sub", "below")
    assert web.get("/Old_name/rename").status_code == 403, "who is not signed in renames nothing"
    form = mia.form("/Old_name/rename")
    fields = {**form, "new": "New name", "redirect": "1", "links": "1", "subpages": "1", "reason": "clearer"}
    assert mia.post("/Old_name/rename", {**fields, "csrf": "x"}).status_code == 403
    answer = mia.post("/Old_name/rename", fields)
    assert answer.status_code == 303
    wait_for_jobs()
    assert text(web, "New name") == "one [[New name|]]"
    assert text(web, "New name/Sub") == "below"
    assert text(web, "Linking 1") == "1: [[New name|]] and %%[[Old name]]%%"
    assert text(web, "Shut") == "[[Old name]]"
    assert "Redirected from" in web.get("/Old_name").text
    newest = web.wiki.page("Linking 1")
    assert newest is not None
    assert (newest.author, newest.note) == ("Mia", "Links to Old name lead to New name")
    where = answer.headers["Location"]
    shown = mia.get(where).text
    assert "Shut</a>: you may not edit it" in shown
    assert web.get(where).status_code == 403
    assert mia.post(where, {**mia.form(where), "undo": "1"}).status_code == 303
    wait_for_jobs()
    assert text(web, "Old name") == "one [[Old name]]"
    assert text(web, "New name") is None
    assert [text(web, f"Linking {number}") for number in range(3)] == [
        f"{number}: [[Old name]] and %%[[Old name]]%%" for number in range(3)
    ]


def renamed_by(person: WikiClient, old: str, new: str, **fields: str) -> str:
    """The address of the work that follows, or of the page."""
    answer = person.post(f"/{old}/rename", {**person.form(f"/{old}/rename"), "new": new, **fields})
    assert answer.status_code == 303
    wait_for_jobs()
    return answer.headers["Location"]


@pytest.mark.parametrize("there", ["another page", "a redirect", "nothing"])
def test_an_undo_moves_no_page_but_the_one_that_was_renamed(web: WikiClient, there: str) -> None:
    """Somebody has renamed it again; its name of before is another page's."""
    mia, bob = web.signed_in("Mia"), web.signed_in("Bob")
    save(web, "A", "the page")
    save(web, "Linking", "[[A]]")
    where = renamed_by(mia, "A", "B", redirect="1", links="1")
    renamed_by(bob, "B", "C", **({"redirect": "1"} if there == "a redirect" else {}))
    if there == "another page":
        save(web, "B", "Carol's own", owner="Carol")
    names = ("A", "B", "C", "Linking")
    before = [text(web, name) for name in names]
    answer = mia.post(where, {**mia.form(where), "undo": "1"})
    wait_for_jobs()
    assert answer.status_code == 409
    assert ("There is no page B" if there == "nothing" else "B is another page by now") in answer.text
    assert [text(web, name) for name in names] == before


def test_an_undo_takes_no_redirect_that_leads_elsewhere(web: WikiClient) -> None:
    mia, bob = web.signed_in("Mia"), web.signed_in("Bob")
    save(web, "A", "the page")
    save(web, "Linking", "[[A]]")
    where = renamed_by(mia, "A", "B", links="1")
    save(web, "A", "a second one")
    renamed_by(bob, "A", "B 2", redirect="1")
    answer = mia.post(where, {**mia.form(where), "undo": "1"})
    assert answer.status_code == 409
    assert "A is a page of its own by now" in answer.text
    assert [text(web, name) for name in ("A", "B", "B 2")] == ["#REDIRECT [[B 2|]]", "the page", "a second one"]


def test_one_undo_renames_subpages_back_over_the_redirects_that_they_left(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for name in ("A", "A/1", "A/2", "A/3"):
        save(web, name, f"text of {name} [[A]]")
    where = renamed_by(mia, "A", "B", redirect="1", links="1", subpages="1")
    assert text(web, "A/1") == "#REDIRECT [[B&#47;1|]]"
    save(web, "A/2", "a page of its own")
    web.wiki.mover.delete("B/3", By("Ann"))
    save(web, "B/3", "another page")
    assert mia.post(where, {**mia.form(where), "undo": "1"}).status_code == 303
    wait_for_jobs()
    assert text(web, "A") == "text of A [[A]]"
    assert text(web, "A/1") == "text of A/1 [[A]]"
    assert [text(web, name) for name in ("A/2", "A/3")] == ["a page of its own", "#REDIRECT [[B&#47;3|]]"]
    assert [text(web, name) for name in ("B", "B/1", "B/3")] == [None, None, "another page"]
    assert check(web.wiki).differences == ()


def test_links_of_a_subpage_are_led_back_once_it_has_its_old_name(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for name in ("A", "A/1"):
        save(web, name, f"text of {name} [[A]]")
    where = renamed_by(mia, "A", "B", links="1", subpages="1")
    assert text(web, "B/1") == "text of A/1 [[B|]]"
    links_job = Jobs(web.wiki.rows, clock_ms).progress(where.partition("job=")[2].encode())
    assert links_job is not None
    subpages = f"/-/moves?job={links_job.job.along.decode()}"
    assert mia.post(subpages, {**mia.form(subpages), "undo": "1"}).status_code == 303
    wait_for_jobs()
    assert (text(web, "A/1"), text(web, "B/1")) == ("text of A/1 [[B|]]", None)
    assert mia.post(where, {**mia.form(where), "undo": "1"}).status_code == 303
    wait_for_jobs()
    assert [text(web, name) for name in ("A", "A/1")] == ["text of A [[A]]", "text of A/1 [[A]]"]


def test_an_undo_beside_an_edit_goes_on(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    mia = web.signed_in("Mia")
    save(web, "A", "the page")
    save(web, "Linking", "[[A]]")
    where = renamed_by(mia, "A", "B", links="1")
    saved = GuardedMoves.save_page

    def late(moves: GuardedMoves, page: Page, body: str, note: str, markup: str, language: str = "") -> Saved:
        monkeypatch.setattr(GuardedMoves, "save_page", saved)
        save(web, page.name, f"{page.body} and more", "Bob")
        return saved(moves, page, body, note, markup, language)

    monkeypatch.setattr(GuardedMoves, "save_page", late)
    undo = mia.post(where, {**mia.form(where), "undo": "1"}).headers["Location"]
    wait_for_jobs()
    assert text(web, "Linking") == "[[A|]] and more"
    assert "; ended" in mia.get(undo).text


def test_subpages_that_cannot_be_renamed_are_named_with_the_reason(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for name in ("Old", "Old/Help: editing", "Old/Help: this: that one", f"Old/{'x' * 30}", "N/Help: editing"):
        save(web, name, "text")
    new = "N" * 1_000
    web.wiki.mover.rename("N/Help: editing", f"{new}/Help: editing", By("Ann", "account"))
    answer = mia.post("/Old/rename", {**mia.form("/Old/rename"), "new": new, "subpages": "1"})
    wait_for_jobs()
    progress = Jobs(web.wiki.rows, clock_ms).progress(answer.headers["Location"].partition("job=")[2].encode())
    assert progress is not None
    assert progress.state == b"ended", "no page holds up the others for ever"
    left = {one.name: one.why for one in progress.left}
    assert left.keys() == {"Old/Help: editing", "Old/Help: this: that one", f"Old/{'x' * 30}"}
    assert left["Old/Help: editing"].startswith("There is a page N")
    assert left["Old/Help: this: that one"].startswith("This cannot be the name of a page")
    assert "Old/Help: editing</a>: There is a page" in mia.get(answer.headers["Location"]).text


def test_no_page_comes_to_a_name_that_looks_like_another_one(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    for name in ("Mine", "Home", "Bank"):
        save(web, name, "text", owner="Mia")
    form = mia.form("/Mine/rename")
    for like in ("Home.", "В\u0430nk", "Ho\u200bme"):
        answer = mia.post("/Mine/rename", {**form, "new": like})
        assert (answer.status_code, "No new page can have this name" in answer.text) == (400, True), like
    assert mia.post("/Mine/delete", mia.form("/Mine/delete")).status_code == 303
    form = mia.form("/Mine/undelete")
    for like in ("Home.", "Ho\u200bme"):
        answer = mia.post("/Mine/undelete", {**form, "new": like})
        assert (answer.status_code, "No new page can have this name" in answer.text) == (400, True), like
    assert mia.post("/Mine/undelete", {**form, "new": "Mine"}).status_code == 303
    assert mia.post("/Mine/rename", {**mia.form("/Mine/rename"), "new": "Mine."}).status_code == 303, "it leaves Mine"


def test_no_page_becomes_a_group_of_the_site_by_a_move(web: WikiClient) -> None:
    rights = web.wiki.rights
    rights.change_rules("vault/", {Privilege.READ: "Groups/Editors"}, rights.rules())
    mia, admin = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    for name in ("Mine", "A", "A/Editors"):
        save(web, name, "+Mia+", owner="Mia")
    form = mia.form("/Mine/rename")
    assert mia.post("/Mine/rename", {**form, "new": "Groups/Editors"}).status_code == 400
    renamed_by(mia, "A", "Groups", subpages="1")
    assert mia.post("/Mine/delete", mia.form("/Mine/delete")).status_code == 303
    assert mia.post("/Mine/undelete", {**mia.form("/Mine/undelete"), "new": "Groups/Editors"}).status_code == 400
    assert (text(web, "Groups"), text(web, "A/Editors"), text(web, "Groups/Editors")) == ("+Mia+", "+Mia+", None)
    renamed_by(admin, "A~2FEditors", "Groups/Editors")
    assert text(web, "Groups/Editors") == "+Mia+"
    assert mia.post("/Groups~2FEditors/delete", mia.form("/Groups~2FEditors/delete")).status_code == 303
    form = mia.form("/Groups~2FEditors/undelete")
    assert mia.post("/Groups~2FEditors/undelete", {**form, "new": "Groups/Editors"}).status_code == 303, "it was there"


def test_a_page_is_not_published_by_a_name_under_another_list(web: WikiClient) -> None:
    rights = web.wiki.rights
    rights.change_rules("vault/", {Privilege.READ: "Mia\nOlga"}, rights.rules())
    save(web, "Vault/Plan", "secret", owner="Olga")
    mia, olga = web.signed_in("Mia"), web.signed_in("Olga")
    fields = {"new": "Plan", "redirect": "1"}
    assert mia.post("/Vault~2FPlan/rename", {**mia.form("/Vault~2FPlan/rename"), **fields}).status_code == 403
    assert text(web, "Plan") is None
    assert olga.post("/Vault~2FPlan/rename", {**olga.form("/Vault~2FPlan/rename"), **fields}).status_code == 303
    assert text(web, "Plan") == "secret"


def test_a_deleted_page_shows_nothing_until_its_owner_brings_it_back(web: WikiClient) -> None:
    olga, mia, root = web.signed_in("Olga"), web.signed_in("Mia"), web.signed_in("Root", admin=True)
    for body in ("one", "WORTGEHEIM"):
        save(web, "Page", body, owner="Olga")
    assert mia.get("/Page/delete").status_code == 403
    assert "/Page/delete" in olga.get("/Page").text
    assert "/Page/delete" not in mia.get("/Page").text
    answer = olga.post("/Page/delete", {**olga.form("/Page/delete"), "reason": "a reason"})
    assert answer.status_code == 303
    for handler in ("", "/raw", "/revisions", "/revisions.xml", "/diff", "/history", "/showcode", "/html", "/undelete"):
        for query in ("", "?revision=1", "?time=9999999999999"):
            shown = mia.get(f"/Page{handler}{query}")
            assert shown.status_code in (403, 404), handler
            assert "WORTGEHEIM" not in shown.text + str(shown.headers)
    for path in ("/-/recentchanges", "/-/recentchanges.xml", "/-/search?q=WORTGEHEIM", "/api/titles", "/-/pageindex"):
        shown = root.get(path).text
        assert "/Page" not in shown
        assert "one" not in re.findall(r"<title>(.*?)</title>", shown)
    assert "/Page/undelete" in olga.get("/Page").text, "a page that is not there says that it can be brought back"
    assert all("/Page/undelete" not in other.get("/Page").text for other in (mia, web))
    assert mia.get("/-/deleted").status_code == 403
    for path in ("/-/deleted", "/Page/undelete"):
        assert root.get(path).text.count("Times are UTC.") == 1
    assert "Page" in root.get("/-/deleted").text
    assert "a reason" in olga.get("/Page/undelete").text
    fields = {**olga.form("/Page/undelete"), "new": "Page again"}
    assert mia.post("/Page/undelete", {**fields, **mia.form("/-/login")}).status_code == 404
    assert olga.post("/Page/undelete", fields).headers["Location"] == "/Page_again"
    assert text(web, "Page again") == "WORTGEHEIM"
    assert [one.what for one in Audit(web.wiki.rows, clock_ms).recent()][:2] == ["undelete page", "delete page"]


def test_only_an_administrator_purges(web: WikiClient) -> None:
    olga, root = web.signed_in("Olga"), web.signed_in("Root", admin=True)
    save(web, "Page", "WORTGEHEIM", owner="Olga")
    olga.post("/Page/delete", olga.form("/Page/delete"))
    fields = {"purge": "1", "sure": "yes"}
    assert olga.post("/Page/undelete", {**olga.form("/Page/undelete"), **fields}).status_code == 403
    assert root.post("/Page/undelete", {**root.form("/Page/undelete"), "purge": "1"}).status_code == 400
    assert "gone for good" in root.post("/Page/undelete", {**root.form("/Page/undelete"), **fields}).text
    assert root.get("/Page/undelete").status_code == 404
    assert Audit(web.wiki.rows, clock_ms).recent()[0].note == "Page: 1 revisions"


def test_a_purge_with_a_new_name_typed_does_neither(web: WikiClient) -> None:
    save(web, "Gone", "text")
    root = web.signed_in("Root", admin=True)
    root.post("/Gone/delete", root.form("/Gone/delete"))
    form = {**root.form("/Gone/undelete"), "new": "Another", "sure": "yes"}
    answer = root.post("/Gone/undelete", {**form, "purge": "1"})
    assert answer.status_code == 400
    assert "Nothing is purged" in answer.text
    assert 'name="new" value="Another"' in answer.text
    assert 'name="sure" value="yes" checked' in answer.text
    assert root.post("/Gone/undelete", form).status_code == 303
    assert text(web, "Another") == "text"


def test_links_that_were_not_led_to_the_new_name_are_said(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    save(web, "Old name", "text")
    save(web, "Linking", "[[Old name]]")
    mia = web.signed_in("Mia")

    def away(*_: object) -> None:
        raise StoreUnavailable("wiki", "it is away")

    monkeypatch.setattr(Jobs, "begin", away)
    answer = mia.post("/Old_name/rename", {**mia.form("/Old_name/rename"), "new": "New name", "links": "1"})
    assert answer.status_code == 503
    assert "The page is New name now." in answer.text
    assert text(web, "New name") == "text"


def test_a_hidden_revision_is_shown_to_nobody_and_follows_a_rename(web: WikiClient) -> None:
    root, mia = web.signed_in("Root", admin=True), web.signed_in("Mia")
    for body in ("one", "WORTGEHEIM", "three"):
        save(web, "Page", body, author=body)
    assert mia.get("/Page/hide").status_code == 403
    form = root.form("/Page/hide")
    assert root.post("/Page/hide", {**form, "revision": "3"}).status_code == 409, "the newest one"
    assert root.post("/Page/hide", {**form, "revision": "2", "reason": "a name"}).status_code == 303
    web.wiki.mover.rename("Page", "Moved", By("Ann", "account"))
    lists = ("/Moved/revisions", "/Moved/revisions.xml", "/Moved/history", "/-/recentchanges", "/Moved/diff?a=1&b=2")
    for path in (*lists, "/Moved?revision=2", "/Moved/raw?revision=2", "/Moved/diff?a=2&b=3", "/Moved/edit?revision=2"):
        assert "WORTGEHEIM" not in root.get(path).text, path
    assert root.post("/Moved/hide", {**form, "revision": "2", "show": "1"}).status_code == 303
    assert root.get("/Moved/raw?revision=2").text == "WORTGEHEIM"
    assert "WORTGEHEIM" in root.get("/-/recentchanges").text


def test_a_page_that_somebody_renamed_has_its_name_again_with_all_that_he_did(web: WikiClient) -> None:
    mal, admin = web.signed_in("Mal"), web.signed_in("Root", admin=True)
    for name in ("Good", "Zoo"):
        save(web, name, f"text of {name}")
    save(web, "Linking", "[[Good]]")
    save(web, "Older", "#REDIRECT [[Zoo]]", "Mal")
    renamed_by(mal, "Good", "Junk", redirect="1", links="1")
    save(web, "Junk", "spoilt", "Mal")
    renamed_by(mal, "Zoo", "Ape house", redirect="1")
    save(web, "Ape house", "spoilt", "Mal")
    asked = "/-/massrevert?author=Mal&since=2020-01-01"
    assert "Junk has this name again" in admin.get(asked).text
    admin.post("/-/massrevert", {**admin.form(asked), "author": "Mal", "since": "2020-01-01"})
    wait_for_jobs()
    assert [text(web, name) for name in ("Good", "Zoo", "Linking")] == ["text of Good", "text of Zoo", "[[Good]]"]
    assert [text(web, name) for name in ("Junk", "Ape house", "Older")] == [None, None, None]
    assert check(web.wiki).differences == ()


def test_all_edits_of_somebody_are_looked_at_and_taken_back(web: WikiClient) -> None:
    root, mia = web.signed_in("Root", admin=True), web.signed_in("Mia")
    save(web, "Good", "good")
    for body in ("spam", "more spam"):
        save(web, "Good", body, author="Spammer")
    save(web, "Bad", "spam", author="Spammer")
    save(web, "Edited since", "fine")
    save(web, "Edited since", "spam", author="Spammer")
    save(web, "Edited since", "fine again")
    path = "/-/massrevert?author=Spammer&since=yesterday"
    assert mia.get(path).status_code == 403
    shown = root.get(path).text
    assert "2 edits go, back to revision 1" in shown
    assert "Spammer began it" in shown
    answer = root.post("/-/massrevert", {**root.form(path), "reason": "spam"})
    assert answer.status_code == 303
    wait_for_jobs()
    assert (text(web, "Good"), text(web, "Bad"), text(web, "Edited since")) == ("good", None, "fine again")
    progress = Jobs(web.wiki.rows, clock_ms).progress(answer.headers["Location"].partition("job=")[2].encode())
    assert progress is not None
    assert ({one.name for one in progress.done}, [one.name for one in progress.left]) == (
        {"Good", "Bad"}, ["Edited since"],
    )  # fmt: skip
    where = answer.headers["Location"]
    assert root.post(where, {**root.form(where), "undo": "1"}).status_code == 303
    wait_for_jobs()
    assert (text(web, "Good"), text(web, "Bad"), text(web, "Edited since")) == ("more spam", "spam", "fine again")
    assert web.wiki.mover.journal.opened() == {}


def test_a_text_that_is_taken_back_has_its_own_format_again(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    save(web, "Page", "==Wikka== //slanted//")
    web.wiki.save("Page", "# Markdown *spam*", author="Spammer", base=1, markup="markdown")
    path = "/-/massrevert?author=Spammer&since=yesterday"
    where = root.post("/-/massrevert", root.form(path)).headers["Location"]
    wait_for_jobs()
    assert (page_of(web, "Page").body, page_of(web, "Page").markup) == ("==Wikka== //slanted//", "wikka")
    assert root.post(where, {**root.form(where), "undo": "1"}).status_code == 303
    wait_for_jobs()
    assert (page_of(web, "Page").body, page_of(web, "Page").markup) == ("# Markdown *spam*", "markdown")
    assert check(web.wiki).differences == ()


def test_pages_whose_names_begin_alike_are_deleted(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    for number in range(3):
        save(web, f"Spam {number}", "x")
    form = root.form("/-/massdelete?prefix=Spam")
    save(web, "Spam 3", "x")
    assert root.post("/-/massdelete", form).status_code == 409, "they are others than were shown"
    assert root.post("/-/massdelete", root.form("/-/massdelete?prefix=Spam")).status_code == 303
    wait_for_jobs()
    assert web.wiki.names() == []


def test_long_names_are_taken_as_they_were_typed(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    name = "L" * 400
    for one in (name, f"{name} two", "L" * 300):
        save(web, one, "text")
    form = root.form(f"/{name}/rename")
    answer = root.post(f"/{name}/rename", {**form, "csrf": "old", "new": f"{name} three"})
    assert answer.status_code == 403
    assert f'value="{name} three"' in answer.text
    shown = root.get("/-/massdelete", query_string={"prefix": f"{name} t"})
    assert (f">{name} two<" in shown.text, f">{'L' * 300}<" in shown.text) == (True, False)


def test_work_that_fell_is_gone_on_with_at_the_next_start_unless_it_was_stopped(web: WikiClient) -> None:
    web.signed_in("Mia")
    for number in range(4):
        save(web, f"Linking {number}", "[[Old]]")
    save(web, "Old", "text")
    web.wiki.mover.rename("Old", "New", By("Mia", "account"))
    jobs = Jobs(web.wiki.rows, clock_ms)
    job = new_job(LINKS, "Mia", "account", source="Old", target="New")
    jobs.begin(job, ["Linking 0", "Linking 1"])
    assert jobs.stop(job.id)
    assert resume(web.wiki) == 0
    wait_for_jobs()
    assert text(web, "Linking 0") == "[[Old]]"
    assert jobs.resume_job(job.id)
    assert resume(web.wiki) == 1
    wait_for_jobs()
    assert [text(web, f"Linking {number}") for number in range(4)] == ["[[New|]]"] * 4, "later ones, too"
    progress = jobs.progress(job.id)
    assert progress is not None
    assert (progress.state, len(progress.done), progress.waiting) == (b"ended", 4, ())
    assert web.wiki.mover.journal.opened() == {}


def test_a_page_that_another_one_includes_is_led_like_a_link(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    save(web, "Old name", "the included words")
    save(web, "Whole", 'begin {{include page="Old name" who="you"}} and %%{{include page="Old name"}}%%')
    save(web, "Templated", "{{include page='Old name'}}")
    assert web.wiki.backlinks("Old name") == ["Templated", "Whole"]
    form = mia.form("/Old_name/rename")
    assert mia.post("/Old_name/rename", {**form, "new": 'A "new" name', "links": "1"}).status_code == 303
    wait_for_jobs()
    assert text(web, "Whole") == (
        'begin {{include page="A &#34;new&#34; name" who="you"}} and %%{{include page="Old name"}}%%'
    )
    assert text(web, "Templated") == "{{include page='A \"new\" name'}}"
    for name in ("Whole", "Templated"):
        assert "the included words" in web.get(f"/{name}").text
    assert web.wiki.backlinks("Old name") == []
    assert check(web.wiki).differences == ()


def test_pages_of_an_older_folder_that_include_others_are_listed_when_it_is_prepared(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiki = web.wiki
    with monkeypatch.context() as older:
        older.setattr(link_index, "names_linked", lambda read: [one for one in names_linked(read) if one != "Part"])
        save(web, "Whole", "{{ Include who='x' page='Part'}} [[Other]]")
        save(web, "Part", "words")
    wiki.rows.delete(SITE, ROW)
    assert wiki.backlinks("Part") == []
    wiki.prepare()
    assert wiki.backlinks("Part") == ["Whole"]
    assert check(wiki).differences == ()
