"""Files of languages: which there are, what they say, and what is said of a broken one."""

from __future__ import annotations

from pathlib import Path

import pytest

from wikka_port.texts import _, _n, _w, figure, speak, speak_as_wiki, spoken
from wikka_port.texts.catalogue import ENGLISH, Languages, UnreadableTexts, direction, is_language, read_catalogue

HEADER = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);\\n"
"Language-Name: Latviešu\\n"
"""
LATVIAN = (
    HEADER
    + """
#: templates/show.html
msgid "Save"
msgstr "Saglabāt"

#: static/editor.js
msgid "{n} page"
msgid_plural "{n} pages"
msgstr[0] "{n} lapa"
msgstr[1] "{n} lapas"
msgstr[2] "{n} lapu"
"""
)


def test_a_text_is_said_in_the_language_of_the_request_and_english_where_there_is_none() -> None:
    speak(read_catalogue("lv", LATVIAN))
    assert (_("Save"), _("Cancel"), _("At {n}", n=3)) == ("Saglabāt", "Cancel", "At 3")
    assert [_n("{n} page", "{n} pages", n) for n in (1, 2, 0, 21)] == ["1 lapa", "2 lapas", "0 lapu", "21 lapa"]
    assert (spoken().name, spoken().direction) == ("Latviešu", "ltr")


def test_braces_in_values_and_texts_without_values_are_left_alone() -> None:
    assert _("It is {x}", x="{y}") == "It is {y}"
    assert _("a {brace}") == "a {brace}"


def test_what_is_kept_is_said_in_the_language_of_the_wiki() -> None:
    speak_as_wiki(read_catalogue("lv", LATVIAN))
    speak(ENGLISH)
    assert (_("Save"), _w("Save")) == ("Save", "Saglabāt")


def test_the_folder_of_the_operator_comes_first(tmp_path: Path) -> None:
    (tmp_path / "lv.po").write_text(LATVIAN, encoding="utf-8")
    (tmp_path / "de.po").write_text(LATVIAN.replace("Latviešu", "Platt"), encoding="utf-8")
    (tmp_path / "README").write_text("no language")
    found = Languages.found(tmp_path)
    assert (found.names["en"], found.names["de"], found.names["lv"]) == ("English", "Platt", "Latviešu")
    assert found.catalogue("de").gettext("Save") == "Saglabāt"
    assert found.catalogue("fr") is ENGLISH
    assert found.catalogue("lv") is found.catalogue("lv")
    assert set(Languages.found().names) == {"en", "de"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("fr.po", "msgid nothing"),
        ("fr.po", HEADER.replace("nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)", "plural=exit(1)")),
        ("french language.po", HEADER),
        ("../x.po", HEADER),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / Path(name).name).write_text(content, encoding="utf-8")
    code = Path(name).name.removesuffix(".po")
    if is_language(code):
        with pytest.raises(UnreadableTexts, match=code):
            Languages.found(tmp_path).catalogue(code)
    elif name == "../x.po":
        assert not is_language("../x")
    else:
        with pytest.raises(UnreadableTexts, match=r"fr\.po"):
            Languages.found(tmp_path)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "fr.po").write_bytes(b"\xff\xfe")
    with pytest.raises(UnreadableTexts, match=r"fr\.po"):
        Languages.found(tmp_path)


def test_the_direction_of_a_language() -> None:
    assert [direction(code) for code in ("en", "he", "ar", "ar-EG", "fa", "de", "yi", "ur")] == [
        *("ltr", "rtl", "rtl", "rtl", "rtl", "ltr", "rtl", "rtl")
    ]


def test_numbers_are_written_as_the_language_writes_them() -> None:
    german = HEADER.replace('"Language-Name', '"Number-Format: 1.234,5\\n"\n"Language-Name')
    text = '\nmsgid "{n:,} of {m:,.1f} in {name} of {plain}"\nmsgstr "{name}: {n:,} von {m:,.1f} ({plain})"\n'
    asked = {"n": 1_234_567, "m": 9_876.54, "name": "1,000", "plain": 2026}
    assert _("{n:,} of {m:,.1f} in {name} of {plain}", **asked) == "1,234,567 of 9,876.5 in 1,000 of 2026"
    speak(read_catalogue("de", german + text))
    assert _("{n:,} of {m:,.1f} in {name} of {plain}", **asked) == "1,000: 1.234.567 von 9.876,5 (2026)"
    assert (figure(1234), figure(0.5, ".0%")) == ("1.234", "50%")


def test_a_header_with_no_number_in_it_is_refused() -> None:
    with pytest.raises(UnreadableTexts, match="Number-Format"):
        read_catalogue("de", HEADER.replace('"Language-Name', '"Number-Format: many\\n"\n"Language-Name'))


def test_a_text_of_nothing_is_nothing() -> None:
    speak(read_catalogue("lv", LATVIAN))
    assert _("") == ""
