"""Notices of renames, deletions and undeletions over a store: to whom, how many, once through kills of the mover."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.falling_wiki import Fallen
from tests.support.stored_wiki import KINDS, settle, stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port import notice_mail
from wikka_port.comments.stored_comments import NewComment
from wikka_port.consistency import check
from wikka_port.moving.jobs import MASS_DELETE, SUBPAGES, UNDO, Job, Jobs, new_job
from wikka_port.moving.journal import deleted
from wikka_port.moving.mover import By
from wikka_port.moving.runner import notify_of_job, resume, work
from wikka_port.notices import move_notices
from wikka_port.notices.notice_rows import INBOX, OUTGOING
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.rules import PageRights, Privilege

BOB = By("Bob", "account", "why so")
STEPS = ("intent", "mark", "arrive", "moved", "leave", "index", "settle", "notified", "done")


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("notices"), request.param) as made:
        yield made


@pytest.fixture
def wiki(store: Wiki) -> Wiki:
    """The store without any page, account or notice of an earlier test."""
    settle(store)
    for table in (
        b"pages",
        b"users",
        b"watches",
        b"watchers",
        INBOX,
        OUTGOING,
        b"deleted",
        b"moves",
        b"site",
        b"emails",
    ):
        store.rows.delete_rows(table, [row for row, _ in store.rows.scan(table)])
    settle(store)
    store.mover.on_step_done = lambda step: None
    return store


@pytest.fixture
def web(wiki: Wiki) -> WikiClient:
    return WikiClient(wiki, edit_burst=10_000)


def pages(wiki: Wiki, *names: str) -> None:
    for name in names:
        wiki.save(name, "A text.", author="Ann", base=0)
    settle(wiki)


def watch(wiki: Wiki, browser: WikiClient, page: str, do: str = "page") -> None:
    browser.post(f"/{page.replace('/', '~2F')}/watch", {**browser.form(f"/{page.replace('/', '~2F')}/watch"), "do": do})
    settle(wiki)


def inbox(wiki: Wiki, browser: WikiClient) -> list[str]:
    settle(wiki)
    found = re.findall(r'<li><span class="entry">(.*?)</span>\n', browser.get("/-/inbox").text, re.DOTALL)
    return [" ".join(re.sub("<.*?>", "", one).split()).removeprefix("new ") for one in found]


def notices(wiki: Wiki, account: bytes) -> int:
    settle(wiki)
    return sum(row.startswith(account + b"\0") for row, _ in wiki.rows.scan(INBOX))


def test_watchers_learn_of_each_move_and_the_mover_does_not(wiki: Wiki, web: WikiClient) -> None:
    ada, bob, eve = web.signed_in("Ada"), web.signed_in("Bob"), web.signed_in("Eve")
    pages(wiki, "Docs/Old", "Docs")
    watch(wiki, ada, "Docs/Old")
    watch(wiki, bob, "Docs/Old")
    watch(wiki, eve, "Docs", "below")
    wiki.mover.rename("Docs/Old", "New", BOB)
    assert inbox(wiki, ada) == inbox(wiki, eve) == ["Bob renamed Docs/Old to New why so"]
    assert 'href="/New"' in ada.get("/-/inbox").text
    wiki.mover.delete("New", BOB)
    assert inbox(wiki, ada) == ["Bob deleted New why so"], "the rename's page is gone, and leads nowhere"
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, BOB)
    assert inbox(wiki, ada) == [
        "Bob brought back New why so",
        "Bob deleted New why so",
        "Bob renamed Docs/Old to New why so",
    ]
    assert len(inbox(wiki, eve)) == 1, "it left the pages that she watches"
    assert inbox(wiki, bob) == []
    wiki.mover.rename("New", "Docs/Back", BOB, redirect=False)
    assert inbox(wiki, eve)[0] == "Bob renamed New to Docs/Back why so"
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_a_move_brings_no_notice_of_a_comment_again(wiki: Wiki, web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    pages(wiki, "Home")
    watch(wiki, ada, "Home")
    wiki.comments.add("Home", b"", NewComment("A comment.", "Bob", "account", "f", "wikka"), allow=lambda _n, _r: None)
    wiki.notices.clear(b"ada") if inbox(wiki, ada) else pytest.fail("no notice of the comment")
    wiki.mover.rename("Home", "Moved", BOB)
    assert inbox(wiki, ada) == ["Bob renamed Home to Moved why so"]


def test_a_page_that_may_not_be_read_stays_unknown(wiki: Wiki, web: WikiClient) -> None:
    ada, root = web.signed_in("Ada"), web.signed_in("Root", admin=True)
    pages(wiki, "Docs", "Docs/Open", "Docs/Shut")
    watch(wiki, ada, "Docs", "below")
    watch(wiki, root, "Docs", "below")
    wiki.rights.change("Docs/Shut", PageRights(), "Bob", {Privilege.READ: "Bob"})
    wiki.mover.rename("Docs/Shut", "Docs/Closed", BOB)
    wiki.mover.delete("Docs/Closed", BOB)
    assert (inbox(wiki, ada), notices(wiki, b"ada")) == ([], 2)
    assert "Inbox</a>" in ada.get("/Docs").text, "the number has none of them either"
    assert inbox(wiki, root) == ["Bob deleted Docs/Closed why so"]
    wiki.mover.undelete("Docs/Closed", deleted(wiki.rows, "Docs/Closed")[0].row, BOB)
    assert inbox(wiki, ada) == []


def test_the_former_name_is_shown_to_who_might_have_read_it(wiki: Wiki, web: WikiClient) -> None:
    ada, root = web.signed_in("Ada"), web.signed_in("Root", admin=True)
    pages(wiki, "Shut/Plan", "Docs")
    watch(wiki, ada, "Docs", "below")
    watch(wiki, root, "Docs", "below")
    wiki.rights.change_rules("Shut", {Privilege.READ: "Bob"}, wiki.rights.rules())
    wiki.mover.rename("Shut/Plan", "Docs/Plan", BOB)
    assert inbox(wiki, ada) == ["Bob gave Docs/Plan its name why so"]
    assert "Shut" not in ada.get("/-/inbox").text
    assert inbox(wiki, root) == ["Bob renamed Shut/Plan to Docs/Plan why so"]
    wiki.rights.change_rules("Shut", {Privilege.READ: None}, wiki.rights.rules())


@pytest.mark.parametrize("kind", ["rename", "delete", "undelete"])
def test_each_notice_comes_once_through_kills_at_each_step(kind: str, wiki: Wiki, web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    for step in STEPS:
        name = f"Page {step}"
        pages(wiki, name)
        watch(wiki, ada, name)
        row = b""
        if kind == "undelete":
            wiki.mover.delete(name, By("Ada", "account"))
            row = deleted(wiki.rows, name)[0].row
        before = notices(wiki, b"ada")

        def fall(done: str, at: str = step) -> None:
            if done == at:
                raise Fallen

        wiki.mover.on_step_done = fall
        try:
            if kind == "rename":
                wiki.mover.rename(name, f"{name} new", BOB)
            elif kind == "delete":
                wiki.mover.delete(name, BOB)
            else:
                wiki.mover.undelete(name, row, BOB)
        except Fallen:
            pass
        else:
            assert (step, wiki.indexes) == ("index", "triggers"), "there is such a step"
        wiki.mover.on_step_done = lambda done: None
        wiki.mover.finish_all()
        assert notices(wiki, b"ada") == before + 1, step
        settle(wiki)


# --- jobs ------------------------------------------------------------------------------------------


def job_of(kind: str, names: list[str], wiki: Wiki, **given: object) -> Job:
    job = new_job(kind, "Root", "account", "tidy up", **given)
    Jobs(wiki.rows, clock_ms).begin(job, names)
    return job


def docs(wiki: Wiki, count: int) -> list[str]:
    names = [f"Docs/Page {number}" for number in range(count)]
    pages(wiki, "Docs", *names)
    return names


def mails(wiki: Wiki) -> int:
    return sum(1 for _ in wiki.rows.scan(OUTGOING))


def test_a_job_brings_one_notice_for_all_its_pages(wiki: Wiki, web: WikiClient) -> None:
    ada, eve, web_of_root = web.signed_in("Ada"), web.signed_in("Eve"), web.signed_in("Root", admin=True)
    names = docs(wiki, 5)
    watch(wiki, ada, "Docs", "below")
    watch(wiki, web_of_root, "Docs", "below")
    watch(wiki, eve, names[2])
    wiki.rights.change(names[4], PageRights(), "Bob", {Privilege.READ: "Bob"})
    job = job_of(SUBPAGES, names, wiki, source="Docs", target="Texts")
    assert work(wiki, job).waiting == ()
    assert inbox(wiki, ada) == ["Root renamed 4 pages, Texts/Page 0 among them tidy up"], "and no number of a fifth"
    assert inbox(wiki, eve) == ["Root renamed Docs/Page 2 to Texts/Page 2 tidy up"]
    assert inbox(wiki, web_of_root) == []
    undo = job_of(UNDO, names, wiki, source="Texts", target="Docs", of=job.id, redirect=False)
    assert work(wiki, undo).left == ()
    assert inbox(wiki, ada)[0] == "Root renamed 4 pages, Docs/Page 0 among them", "redirects go without a word"
    work(wiki, job_of(MASS_DELETE, names, wiki))
    assert inbox(wiki, ada) == ["Root deleted 4 pages, Docs/Page 0 among them tidy up"]
    assert (notices(wiki, b"ada"), notices(wiki, b"eve")) == (3, 3)


def test_a_large_job_names_a_bounded_number_of_pages(
    wiki: Wiki, web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (move_notices, notice_mail):
        monkeypatch.setattr(module, "NOTICED_MOVES", 3)
    if wiki.indexes == "triggers":
        pytest.skip("another process runs the trigger, with its own bound")
    ada, eve, _ = web.signed_in("Ada"), web.signed_in("Eve"), web.signed_in("Root", admin=True)
    names = docs(wiki, 6)
    watch(wiki, ada, "Docs", "below")
    for name in names[3:5]:
        watch(wiki, eve, name)
    work(wiki, job_of(MASS_DELETE, names, wiki))
    assert inbox(wiki, ada) == ["Root deleted 3+ pages, Docs/Page 0 among them tidy up"]
    assert inbox(wiki, eve) == ["Root deleted 2 pages, Docs/Page 3 among them tidy up"]


def test_a_stopped_job_tells_what_it_moved_and_each_page_once(wiki: Wiki, web: WikiClient) -> None:
    ada, _ = web.signed_in("Ada"), web.signed_in("Root", admin=True)
    names = docs(wiki, 60)
    watch(wiki, ada, "Docs", "below")
    jobs, job = Jobs(wiki.rows, clock_ms), job_of(MASS_DELETE, names, wiki)
    seen = 0

    def step() -> None:
        nonlocal seen
        seen += 1
        if seen == 10:
            jobs.stop(job.id)

    first = work(wiki, job, step)
    assert first.is_stopped
    assert 0 < len(first.done) < 60
    assert [one.split()[2] for one in inbox(wiki, ada)] == [str(len(first.done))]
    assert not notify_of_job(wiki, job.id), "all is told"
    jobs.resume_job(job.id)
    work(wiki, job)
    assert sorted(int(one.split()[2]) for one in inbox(wiki, ada)) == sorted([len(first.done), 60 - len(first.done)])


@pytest.mark.parametrize("step", ["moved", "leave", "notified", "done"])
def test_a_job_that_is_killed_brings_one_notice(step: str, wiki: Wiki, web: WikiClient) -> None:
    ada, _ = web.signed_in("Ada"), web.signed_in("Root", admin=True)
    names = docs(wiki, 4)
    watch(wiki, ada, "Docs", "below")
    job, seen = job_of(MASS_DELETE, names, wiki), 0

    def fall(done: str) -> None:
        nonlocal seen
        seen += done == step
        if done == step and seen == 2:
            raise Fallen

    wiki.mover.on_step_done = fall
    with pytest.raises(Fallen):
        work(wiki, job)
    wiki.mover.on_step_done = lambda done: None
    assert inbox(wiki, ada) == []
    wiki.rows.delete(b"moves", job.id, [b"m:lease"])  # its time is over
    wiki.mover.finish_all()
    work(wiki, job)
    assert inbox(wiki, ada) == ["Root deleted 4 pages, Docs/Page 0 among them tidy up"]
    assert resume(wiki) == 0
    assert notices(wiki, b"ada") == 1


def test_a_job_that_was_stopped_and_killed_is_told_at_the_next_start(wiki: Wiki, web: WikiClient) -> None:
    ada, _ = web.signed_in("Ada"), web.signed_in("Root", admin=True)
    names = docs(wiki, 3)
    watch(wiki, ada, "Docs", "below")
    jobs, job, seen = Jobs(wiki.rows, clock_ms), job_of(MASS_DELETE, names, wiki), 0

    def fall(done: str) -> None:
        nonlocal seen
        seen += done == "done"
        if seen == 2:
            jobs.stop(job.id)
            raise Fallen

    wiki.mover.on_step_done = fall
    with pytest.raises(Fallen):
        work(wiki, job)
    wiki.mover.on_step_done = lambda done: None
    assert inbox(wiki, ada) == []
    resume(wiki)
    assert inbox(wiki, ada) == ["Root deleted 2 pages, Docs/Page 0 among them tidy up"]
    resume(wiki)
    assert (notices(wiki, b"ada"), mails(wiki)) == (1, 0)
