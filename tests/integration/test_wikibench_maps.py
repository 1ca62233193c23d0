"""Views and edits through maps, by users who are signed in, on wikis with the forms of MediaWiki and DokuWiki."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.form_wikis import PASSWORD, Call, FormDokuWiki, FormMediaWiki, FormWiki, serving
from wikibench.addresses.mapping import LoginRules
from wikibench.addresses.paths import Layout
from wikibench.cli import main
from wikibench.errors import SignInError, TargetError, TraceFileError
from wikibench.latency import Recorder
from wikibench.pacing import Pace, plan, planned_seconds, shape_of
from wikibench.run import replay
from wikibench.targets.login import merged_cookies, read_users, sign_in_all
from wikibench.targets.map_files import load_map
from wikibench.targets.target import parse_target
from wikibench.trace.lines import SAVE, VIEW, Request
from wikibench.visits import Load


@pytest.fixture
def media() -> Iterator[FormMediaWiki]:
    wiki = FormMediaWiki()
    with serving(wiki):
        yield wiki


@pytest.fixture
def doku() -> Iterator[FormDokuWiki]:
    wiki = FormDokuWiki()
    with serving(wiki):
        yield wiki


def run(wiki: FormWiki, name: str, *visits: tuple[str, str], with_users: bool = True) -> Recorder:
    requests = [Request(1_000_000 + n * 1_000, f"http://w/{page}", flag) for n, (page, flag) in enumerate(visits)]
    layout, pace, shape = Layout(map=load_map(name)), Pace(), shape_of(requests)
    assert layout.map.login is not None
    target = parse_target(wiki.url)
    given = [(user, PASSWORD) for user in wiki.users] if with_users else []
    target = replace(target, users=sign_in_all(target, layout.map.login, given, ()))
    wiki.views.clear()
    load = Load(target, layout, expect_404=True, planned_s=planned_seconds(pace, shape))
    return replay(load, plan(lambda: requests, pace, shape)).recorder


def outcomes(recorder: Recorder) -> dict[tuple[str, str], int]:
    return {(str(kind), str(outcome)): pair.response.count for (kind, outcome), pair in recorder.pairs.items()}


def authors(wiki: FormWiki) -> list[str]:
    return sorted(author for revisions in wiki.texts.values() for _, author in revisions)


def test_edits_of_a_mediawiki_are_saved_by_its_users_in_rotation(media: FormMediaWiki) -> None:
    recorder = run(media, "mediawiki", *[(f"page_{n}", SAVE) for n in range(6)], ("page_0", VIEW), ("two words?", VIEW))
    assert media.refused == []
    assert recorder.failed() == 0
    assert outcomes(recorder)["edit-save", "3xx"] == 6
    assert sorted(media.texts) == [f"Page {n}" for n in range(6)]
    assert authors(media) == ["Ann", "Ann", "Ben", "Ben", "Cid", "Cid"]
    assert sorted(media.views) == ["Page 0", "Two words"], "a ? of a trace begins its query"


def test_a_conflict_of_a_mediawiki_is_told_from_a_failure(media: FormMediaWiki) -> None:
    media.saved_first = {"Busy"}
    recorder = run(media, "mediawiki", ("busy", SAVE), ("free", SAVE))
    assert outcomes(recorder) == {("edit-form", "2xx"): 2, ("edit-save", "conflict"): 1, ("edit-save", "3xx"): 1}
    assert recorder.failed() == 0
    assert media.texts["Busy"] == [("of somebody else", "127.0.0.2")]


def test_a_mediawiki_takes_edits_of_nobody_in_particular(media: FormMediaWiki) -> None:
    recorder = run(media, "mediawiki", ("page", SAVE), with_users=False)
    assert outcomes(recorder) == {("edit-form", "2xx"): 1, ("edit-save", "3xx"): 1}
    assert authors(media) == [""]


def test_a_session_that_is_lost_is_a_failure(media: FormMediaWiki) -> None:
    requests = [Request(1_000_000, "http://w/page", SAVE)]
    target = replace(parse_target(media.url), users=(f"my_wiki_session={media.session('Ann')}",))
    load = Load(target, Layout(map=load_map("mediawiki")))
    recorder = replay(load, plan(lambda: requests, Pace(), shape_of(requests))).recorder
    assert outcomes(recorder) == {("edit-form", "2xx"): 1, ("edit-save", "broken"): 1}
    assert "loss of session data" in media.refused[0]


def test_edits_of_a_dokuwiki(doku: FormDokuWiki) -> None:
    doku.write("busy", "This is edit 1 of the replay.", "dan")
    doku.texts["busy"] = [("", "dan")]
    doku.locks["locked"] = "dan"
    doku.saved_first = {"busy"}
    visits = [("Page_one", SAVE), ("busy", SAVE), ("locked", SAVE), ("page two", SAVE), ("Page_One", VIEW)]
    recorder = run(doku, "dokuwiki", *visits)
    assert doku.refused == []
    found = outcomes(recorder)
    assert found[("edit-form", "2xx")] == 3
    assert found[("edit-form", "conflict")] == 1, "somebody else edits the page"
    assert found[("edit-save", "conflict")] == 1
    assert found[("edit-save", "3xx")] == 2
    assert recorder.failed() == 0
    assert sorted(doku.texts) == ["busy", "page one", "page two"]
    assert doku.views == ["page one"]


def test_who_is_not_signed_in_cannot_edit_a_dokuwiki_and_the_report_says_what_to_do(doku: FormDokuWiki) -> None:
    assert outcomes(run(doku, "dokuwiki", ("page", SAVE), with_users=False)) == {("edit-form", "4xx"): 1}


def test_a_sign_in_counts_where_the_page_after_it_is_missing(media: FormMediaWiki) -> None:
    media.has_main_page = False
    assert outcomes(run(media, "mediawiki", ("page", SAVE)))["edit-save", "3xx"] == 1
    assert authors(media) == ["Ann"]


class Silent(FormMediaWiki):
    """It leads a name that it does not know to a page that is missing, and sets no new cookie."""

    def _login(self, call: Call, session: str) -> None:
        if call.command == "POST":
            call.send_page(302, "", f"my_wiki_session={session}; path=/", location=f"{self.url}/index.php/Gone")
        else:
            super()._login(call, session)


def test_an_error_behind_the_form_without_a_cookie_is_a_refusal() -> None:
    wiki, login = Silent(), load_map("mediawiki").login
    assert login is not None
    with serving(wiki), pytest.raises(SignInError, match=r"\(status 404\)"):
        sign_in_all(parse_target(wiki.url), login, [("Ann", PASSWORD)], ())


@pytest.mark.parametrize(("name", "kind"), [("mediawiki", FormMediaWiki), ("dokuwiki", FormDokuWiki)])
def test_wrong_passwords_are_refused_and_stand_in_no_message(name: str, kind: type[FormWiki]) -> None:
    wiki, login = kind(), load_map(name).login
    assert login is not None
    with serving(wiki), pytest.raises(SignInError, match=r"does not sign in user 'ann'") as caught:
        sign_in_all(parse_target(wiki.url), login, [("ann", "wrong-secret")], ())
    assert "wrong-secret" not in str(caught.value)


def test_a_page_without_a_form_to_sign_in_is_named(media: FormMediaWiki) -> None:
    with pytest.raises(TargetError, match=r"no form with the field 'p' to sign in with \(status 404\)"):
        sign_in_all(parse_target(media.url), LoginRules("/in", "n", "p"), [("Ann", PASSWORD)], ())


def test_cookies_of_a_user_and_of_a_form() -> None:
    assert merged_cookies("a=1; b=2", "b=3; c=x=y") == "a=1; b=3; c=x=y"
    assert merged_cookies("a=1; b=2", 'a=deleted; b=""') == ""
    assert merged_cookies("", "") == ""


@pytest.mark.parametrize("text", ["", "name,password\n", "ann\n", "ann,a,b\n", ",a\n", "ann,\xff"])
def test_files_without_users_say_what_a_line_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(TraceFileError, match=r"name,password"):
        read_users(path)


def test_users_are_read_with_a_heading_or_without(tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    path.write_text('Name,Password\nann,a\n\n"b,en","x ""y"""\n', encoding="utf-8")
    assert read_users(path) == [("ann", "a"), ("b,en", 'x "y"')]


def command(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_whole_way_with_a_map(media: FormMediaWiki, tmp_path: Path) -> None:
    for title in ("One", "Two words", "Žemē", "Four", "Five & six"):
        media.write(title, "", "Ann")
    users, trace, out = tmp_path / "users.csv", tmp_path / "day.trace", tmp_path / "out"
    users.write_text(f"Ann,{PASSWORD}\nBen,{PASSWORD}\n")
    size = ("--requests", 30, "--rate", 300, "--edits", "30%")
    made = command("synth", "--target", media.url, "--map", "mediawiki", "--out", trace, *size)
    assert made.exit_code == 0, made.output
    assert "5 pages" in made.output
    given = ("--target", media.url, "--map", "mediawiki", "--connections", "visitor", "--lateness", "60s")
    done = command("replay", trace, *given, "--users", users, "--report", out, "--require", "errors<1")
    assert done.exit_code == 0, done.output
    assert media.refused == []
    assert set(media.views) <= {*media.texts, "Main Page", "/"}, "the first is the check, the second follows a login"
    text = (out / "report.json").read_text()
    report = json.loads(text)
    assert (report["map"], report["users"], report["connections"]) == ("mediawiki", 2, "visitor")
    assert PASSWORD not in text
    assert not any(session in text for session in media.sessions)


def test_two_addresses_of_a_command_take_turns(tmp_path: Path) -> None:
    trace = tmp_path / "day.trace"
    trace.write_text("".join(f"{n} {1190146243 + n / 100:.3f} http://w/Page{n} -\n" for n in range(8)))
    wikis = (FormMediaWiki(), FormMediaWiki())
    with serving(wikis[0]), serving(wikis[1]):
        targets = [word for wiki in wikis for word in ("--target", wiki.url)]
        done = command("replay", trace, *targets, "--map", "mediawiki", "--expect-404", "--lateness", "60s")
    assert done.exit_code == 0, done.output
    assert [sorted(set(wiki.views) - {"/"}) for wiki in wikis] == [
        ["Page0", "Page2", "Page4", "Page6"],
        ["Page1", "Page3", "Page5", "Page7"],
    ]


def test_mistakes_end_with_status_2_and_one_line(media: FormMediaWiki, tmp_path: Path) -> None:
    users, trace = tmp_path / "users.csv", tmp_path / "day.trace"
    users.write_text("Ann,wrong\n")
    trace.write_text("1 1190146243.326 http://w/Page save\n")
    for words, why in (
        (("--map", "mediawiki", "--users", users), "does not sign in user 'Ann'"),
        (("--users", users), "the map plain says nothing of signing in"),
        (("--map", "medawiki"), "neither one of columnar, mediawiki, dokuwiki, wikka, plain nor a file"),
    ):
        found = command("replay", trace, "--target", media.url, *words)
        assert found.exit_code == 2, found.output
        assert why in found.output
    found = command("synth", "--target", media.url, "--map", "dokuwiki", "--out", trace, "--requests", 1, "--rate", 1)
    assert found.exit_code == 2
    assert "does not list its pages; write the page names into a file" in found.output
