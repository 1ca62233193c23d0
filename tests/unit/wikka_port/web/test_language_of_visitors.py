"""Each visitor is answered in a language of their own, and the next one hears nothing of it."""

from __future__ import annotations

from tests.support.wiki_client import WikiClient


def test_a_person_chooses_a_language_and_nobody_else_hears_it() -> None:
    web = WikiClient()
    web.save("/P", "text")
    mia = web.signed_in("Mia")
    form = mia.form("/-/settings")
    assert mia.post("/-/settings", {**form, "do": "looks", "language": "de"}).status_code == 303
    assert '<html lang="de"' in mia.get("/P").text
    assert "Bearbeiten" in mia.get("/P").text
    assert '<html lang="en"' in web.get("/P").text
    mia.get("/P")
    refused = web.get("/P", headers={"Host": "elsewhere.example"})  # answered before anybody knows who asks
    assert (refused.status_code, '<html lang="en"' in refused.text) == (403, True)
    assert mia.post("/-/settings", {**form, "do": "looks", "language": ""}).status_code == 303
    assert '<html lang="en"' in mia.get("/P").text


def test_a_language_that_is_gone_is_the_wikis() -> None:
    web = WikiClient(language="de")
    mia = web.signed_in("Mia")
    mia.post("/-/settings", {**mia.form("/-/settings"), "do": "looks", "language": "en"})
    assert '<html lang="en"' in mia.get("/P").text
    mia.post("/-/settings", {**mia.form("/-/settings"), "do": "looks", "language": "not a language"})
    assert '<html lang="en"' in mia.get("/P").text, "what is no language changes nothing"
