"""Names that look like another are found, and ordinary names of every script are taken."""

from __future__ import annotations

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.accounts.user_names import Unsuitable, checked_name
from wikka_port.confusable_names import find_confusable, find_signature_confusable, similar_names

LOOK_ALIKES = {
    "Home\u200bPage": "HomePage",
    "Home\u00adPage": "HomePage",
    "\u2060HomePage": "HomePage",
    "HomePage\u3164": "HomePage",
    "Home\u115fPage": "HomePage",
    "Home\u200dPage": "HomePage",
    "Home\ufe0fPage": "HomePage",
    "\u202eegaPemoH": "egaPemoH",
    "Page \uff11\uff12": "Page 12",
    "\uff21nn": "Ann",
    "\U0001d407ome": "Home",
    "H\u043em\u0435": "Home",
    "\u0410nn": "Ann",
    "\u0661\u06623": "123",
}
ORDINARY = [
    "Müller", "Россия", "Ёлка и снег", "Ελλάδα", "北京", "日本語", "けいおん！", "Jリーグ", "Hello日本", "한국어",
    "שלום", "العربية",
    "می\u200cخواهم", "क्\u200dष", "ไทย", "ქართული", "Հայերեն", "ትግርኛ", "Tiếng Việt", "Łódź", "Rēzekne", "x²", "½", "№ 5",
    "µTorrent", "α-helix", "👩\u200d🔬", "❤\ufe0f", "١٢٣", "Ann O'Neill", "Sammy Davis Jr.", "C++",
    "Vitamin B₁₂", "сор",
]  # fmt: skip


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_the_look_alike_is_named(name: str) -> None:
    found = find_confusable(name)
    assert found is not None
    assert found.like == LOOK_ALIKES[name]
    assert "looks like" in str(found)
    assert find_signature_confusable(name) is not None


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names_are_taken(name: str) -> None:
    assert find_confusable(name) is None
    assert find_signature_confusable(name) is None


def test_a_new_page_that_looks_like_another_is_refused_with_its_text() -> None:
    web = WikiClient(edit_burst=100)
    answer = web.save("/Home\u200bPage", "my text")
    assert (answer.status_code, "“HomePage”" in answer.text, "my text" in answer.text) == (400, True, True)
    assert web.wiki.page("Home\u200bPage") is None


def test_a_twin_is_refused_only_where_the_other_is_a_page() -> None:
    web = WikiClient(edit_burst=100)
    assert similar_names("сор") == ["cop"]
    assert web.save("/сор", "rubbish, in Russian").status_code == 303
    assert web.save("/Dr.", "text").status_code == 303
    web.save("/HomePage", "text")
    web.save("/cop", "text")
    for name in ("HomePage.", "HomePage...", "сор."):
        assert web.save(f"/{name}", "text").status_code == 400, name


def test_a_page_that_is_there_goes_on_and_can_be_linked() -> None:
    web = WikiClient(edit_burst=100)
    web.wiki.save("H\u043eme", "imported", author="import", base=0)
    assert web.save("/H\u043eme", "edited").status_code == 303
    web.save("/Other", "[[H\u043eme]]")
    assert 'class="missing"' not in web.get("/Other").text


@pytest.mark.parametrize(
    "name",
    ["Ann.", "An\u200bn", "\uff11\uff12\uff17.0.0.1", "127.0.0.1.", "127.0.0.1\u200b", "127.0.0.1:80", "[::1]:8080"],
)
def test_a_name_of_an_account_that_looks_like_another_is_refused(name: str) -> None:
    with pytest.raises(Unsuitable):
        checked_name(name)
    assert checked_name("Ann J.") == "Ann J."
