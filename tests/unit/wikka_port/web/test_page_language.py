"""The language of a page, as its editor gives it."""

from __future__ import annotations

import re

from tests.support.wiki_client import WikiClient
from wikka_port.pages import Page
from wikka_port.rights.rules import PageRights, Privilege


def page(web: WikiClient, name: str = "P") -> Page:
    found: Page | None = web.wiki.page(name)
    assert found is not None
    return found


def chosen(web: WikiClient, path: str = "/P/edit") -> str:
    select = re.search(r'<select name="language".*?</select>', web.get(path).text, re.DOTALL)
    assert select is not None
    return re.findall(r'<option value="(\w+)"[^>]* selected', select.group())[0]


def test_a_page_gets_the_language_that_was_chosen_and_keeps_it() -> None:
    web = WikiClient()
    web.save("/P", "one")
    assert (page(web).language, chosen(web)) == ("", "en")
    web.save("/P", "zwei", language="de")
    assert (page(web).language, chosen(web)) == ("de", "de")
    web.save("/P", "drei")
    assert page(web).language == "de"
    web.save("/P", "drei", language="en")
    assert (page(web).language, page(web).number) == ("en", 4)


def test_a_language_alone_is_an_edit_and_the_same_one_is_none() -> None:
    web = WikiClient()
    web.save("/P", "one")
    web.save("/P", "one", language="en")
    assert page(web).number == 1
    web.save("/P", "one", language="fr")
    assert (page(web).number, page(web).language) == (2, "fr")


def test_what_is_no_language_changes_nothing() -> None:
    web = WikiClient()
    web.save("/P", "one", language="de")
    web.save("/P", "two", language="klingon")
    assert page(web).language == "de"


def test_a_new_page_is_in_the_language_of_the_wiki() -> None:
    web = WikiClient(language="de")
    assert chosen(web) == "de"
    web.save("/P", "eins")
    assert page(web).language == "de"


def test_two_who_edit_at_once_one_the_text_and_one_the_language() -> None:
    """An editor that was open with the old language does not bring it back."""
    web = WikiClient()
    web.save("/P", "a\nb\nc\nd\ne\n", language="de")
    form = {**web.form("/P/edit"), "language": chosen(web)}
    web.save("/P", "a\nb\nc\nd\ne\n", language="fr")
    web.post("/P/edit", {**form, "body": "A\nb\nc\nd\ne\n"})
    assert (page(web).body, page(web).language) == ("A\nb\nc\nd\ne\n", "fr")


def test_going_back_brings_back_the_language() -> None:
    web = WikiClient()
    web.save("/P", "one")
    web.save("/P", "deux", language="fr")
    web.post("/P/revert?revision=1", web.form("/P/revert?revision=1"))
    assert (page(web).body, page(web).language) == ("one", "en")
    web.post("/P/revert?revision=2", web.form("/P/revert?revision=2"))
    assert (page(web).body, page(web).language) == ("deux", "fr")
    assert chosen(web, "/P/edit?revision=1") == "en"


def test_a_copy_is_in_the_language_of_its_model() -> None:
    web = WikiClient()
    web.save("/P", "uno", language="es")
    assert chosen(web, "/Q/edit?like=P") == "es"


def test_a_preview_keeps_what_was_chosen() -> None:
    web = WikiClient()
    web.save("/P", "one")
    answer = web.post("/P/edit", {**web.form("/P/edit"), "body": "שלום", "language": "he", "preview": "1"})
    assert '<option value="he" lang="he" dir="rtl" selected' in answer.text
    assert '<article class="content" lang="he" dir="rtl"' in answer.text
    saved = web.post("/P/edit", {**web.form_of(answer), "body": "שלום", "language": "he"})
    assert (saved.status_code, page(web).language) == (303, "he")


def test_a_draft_keeps_what_was_chosen() -> None:
    web = WikiClient()
    web.save("/P", "one")
    web.post("/P/draft", {**web.form("/P/edit"), "body": "typed", "language": "sv"})
    web.post("/P/draft", {**web.form("/P/edit"), "body": "typed", "language": "en"})
    kept = re.findall(r"/edit\?draft=[0-9a-f]{16}", web.get("/P/edit").text)
    languages = {chosen(web, f"/P{one}") for one in kept}
    assert languages == {"sv", "en"}


def test_readers_browsers_are_told_where_it_is_not_the_language_of_the_wiki() -> None:
    web = WikiClient()
    web.save("/P", "one")
    web.save("/H", "שלום", language="he")
    web.save("/D", "Haus", language="de")
    assert '<article class="content">' in web.get("/P").text
    assert '<article class="content" lang="he" dir="rtl">' in web.get("/H").text
    assert '<article class="content" lang="de">' in web.get("/D").text
    assert 'lang="de"' in web.get("/D/print").text
    old = web.get("/H?revision=1")
    web.save("/H", "x", language="en")
    old = web.get("/H?revision=1")
    assert '<article class="content" lang="he" dir="rtl">' in old.text


def test_a_comment_is_taken_for_one_in_the_language_of_its_page_and_turns_with_its_own_letters() -> None:
    web = WikiClient()
    web.wiki.save("P", "שלום", author="Ann", base=0, language="he")
    web.wiki.save("Plain", "words", author="Ann", base=0)
    for path, attributes in (("/P", ' lang="he" dir="auto"'), ("/Plain", ' dir="auto"')):
        form = web.form(f"{path}/comments")
        seen = web.post(f"{path}/comments", {**form, "body": "Some words.", "preview": "1"}).text
        assert f'<article class="content comment-text"{attributes}>' in seen
        assert f'<textarea id="body"{attributes} class="short"' in seen
        assert web.post(f"{path}/comments", {**form, "body": "Some words.", "send": "1"}).status_code == 303
        for shown in (f"{path}/comments", f"{path}/comments?answer=1", f"{path}?comments=oldest"):
            assert f'<div class="content comment-text"{attributes}>' in web.get(shown).text, shown


def test_a_suggestion_and_a_conflict_are_in_the_language_of_the_page() -> None:
    web = WikiClient()
    web.wiki.save("P", "אחת\n\nשתיים", author="Olga", base=0, owner="Olga", language="he")
    form = {**web.form("/P/edit"), "language": chosen(web)}
    web.wiki.save("P", "ONE\n\nשתיים", author="Olga", base=1, language="he")
    conflict = web.post("/P/edit", {**form, "body": "UNO\n\nשתיים", "save": "1"})
    assert conflict.status_code == 409
    for place in ("body", "mine", "theirs"):
        assert f'<textarea id="{place}" lang="he" dir="rtl"' in conflict.text
    assert '<tbody lang="he">' in conflict.text, "its lines turn with their own letters, and its columns do not"
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    web.wiki.clock_s += 1
    mia = web.signed_in("Mia")
    form = mia.form("/P/suggestion")
    seen = mia.post("/P/suggestion", {**form, "body": "שלום", "preview": "1"}).text
    assert '<textarea id="body" lang="he" dir="rtl" name="body"' in seen
    assert '<article class="content" lang="he" dir="rtl">' in seen
    mia.post("/P/suggestion", {**form, "body": "שלום", "send": "1"})
    (one,) = web.wiki.suggestions.of("P")
    olga = web.signed_in("Olga")
    compared = ("/P/diff", "/P/diff?style=inline", "/P/history", "/P/revert?revision=1", f"/P/suggestion?id={one.id}")
    for path in compared:
        assert '<tbody lang="he">' in olga.get(path).text, path
    web.wiki.save("English", "\n".join(map(str, range(40))), author="Ann", base=0)
    web.wiki.save("English", "\n".join(map(str, range(1, 41))), author="Ann", base=1)
    assert "<tbody>" in web.get("/English/diff").text
    german = WikiClient(web.wiki, language="de")
    shown = german.get("/English/diff").text
    assert '<tbody lang="en">' not in shown, "a page without a language is in that of the wiki"
