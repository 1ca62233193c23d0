"""The form that deletes a page is for the revision that it was shown with; on a wiki on a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_wiki_moves_web import save, text
from tests.support.stored_wiki import stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port.moving.mover import By


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WikiClient]:
    with stored_wiki(tmp_path) as wiki:
        yield WikiClient(wiki, edit_burst=10_000)


def test_a_page_that_changed_since_its_form_was_shown_is_not_deleted(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    save(web, "Page", "one", owner="Olga")
    form = {**olga.form("/Page/delete"), "reason": "a reason"}
    save(web, "Page", "two", author="Mia", owner="Olga")
    refused = olga.post("/Page/delete", form)
    assert (refused.status_code, "The page was changed meanwhile." in refused.text) == (409, True)
    assert 'name="reason" value="a reason"' in refused.text
    assert '/Page/diff?a=1&amp;b=2"' in refused.text
    assert '<span class="author">Mia</span>' in refused.text
    assert "The newest revision is 2" in refused.text
    nothing = {key: value for key, value in form.items() if not key.startswith("base")}
    other = {**olga.form_of(refused), "base_token": "0" * 16}
    for sent in (form, nothing, other, {**other, "base": "x"}):
        again = olga.post("/Page/delete", sent)
        assert (again.status_code, text(web, "Page")) == (409, "two")
        assert "The newest revision is 2" in again.text
        assert ("/Page/diff?a=1&amp;b=2" in again.text) == (sent is form), "another page's revision has no difference"
    stale = olga.post("/Page/delete", {**form, "csrf": "0.0"})
    assert (stale.status_code, "The newest revision is 2" in stale.text) == (403, True)
    assert "The newest revision" not in olga.get("/Page/delete").text
    assert olga.post("/Page/delete", olga.form_of(refused)).status_code == 303, "its form is for the newest"
    assert text(web, "Page") is None


def test_a_page_that_is_another_one_by_now_is_not_deleted(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    save(web, "Page", "one", owner="Olga")
    form = olga.form("/Page/delete")
    web.wiki.mover.rename("Page", "Away", By("Olga", "account"), redirect=False)
    save(web, "Page", "another", owner="Olga")
    refused = olga.post("/Page/delete", form)
    assert (refused.status_code, "The page was changed meanwhile." in refused.text) == (409, True)
    assert (text(web, "Page"), text(web, "Away")) == ("another", "one")
