"""The file of a language: every text is found, what was translated is kept, what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import polib
import pytest
from click.testing import CliRunner

from wikka_port.assets import language_of, name_of, script_of
from wikka_port.cli import main
from wikka_port.texts import files
from wikka_port.texts.catalogue import ENGLISH, Catalogue, UnreadableTexts, read_catalogue
from wikka_port.texts.files import Text, texts, texts_of

PYTHON = '''
from wikka_port.texts import N_, _, _n, _w
SAVED = N_("Saved.")
def told(n):
    """No _("docstring") is one."""
    return _("At least {count} of them", count=n) + _n("{n} page", "{n} pages", n) + _w("Back") + _(SAVED) + f"{n}"
'''
TEMPLATE = """
{{ 'Save'|t }} {{ one|t }} {{ tabs([('a', 'Read'|t)]) }}
{% trans name=page %}Edit
  {{ name }} 100%{% endtrans %}
{% trans n=count %}{{ n }} edit{% pluralize %}{{ n }} edits{% endtrans %}
"""
SCRIPT = """
const { _, _n } = wikkaTexts;
this.say(_("Kept {clock}", { clock }), obj._("not this"), _n("{n} edit", "{n} edits", n), _("say \\"so\\""));
"""


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (
            "a.py",
            PYTHON,
            {("Saved.", ""), ("At least {count} of them", ""), ("{n} page", "{n} pages"), ("Back", "")},
        ),
        (
            "a.html",
            TEMPLATE,
            {("Save", ""), ("Read", ""), ("Edit %(name)s 100%%", ""), ("%(n)s edit", "%(n)s edits")},
        ),
        ("a.js", SCRIPT, {("Kept {clock}", ""), ("{n} edit", "{n} edits"), ('say "so"', "")}),
    ],
)
def test_every_text_is_found(path: str, content: str, expected: set[tuple[str, str]]) -> None:
    assert {(text.one, text.many) for text in texts_of(path, content)} == expected


def test_a_file_that_is_brought_up_to_date_keeps_what_it_has() -> None:
    first = files.up_to_date(None, [Text("Save", "", "a.py:1"), Text("Old", "", "a.py:2")], "fr")
    first.metadata["Language-Name"] = "français"
    first.find("Save").msgstr = "Enregistrer"
    now = [
        Text("New", "", "b.js:9"),
        Text("Save", "", "a.py:7"),
        Text("Save", "", "c.html:1"),
        Text("{n} a", "{n} b", "x.py:1"),
    ]
    second = files.up_to_date(polib.pofile(files.written(first)), now, "fr")
    assert [entry.msgid for entry in second] == ["New", "Save", "{n} a"]
    assert second.find("Save").msgstr == "Enregistrer"
    assert [place for place, _ in second.find("Save").occurrences] == ["a.py", "c.html"]
    assert (second.metadata["Language-Name"], second.find("{n} a").msgid_plural) == ("français", "{n} b")
    moved = [one._replace(place=one.place + "0") for one in now]
    assert files.written(files.up_to_date(second, moved, "fr")) == files.written(second), "lines do not count"


def test_what_is_missing_or_wrong_is_named() -> None:
    made = files.up_to_date(None, [Text(f"{n} {{x}}", "", "a.py:1") for n in range(4)], "fr")
    made[1].msgstr, made[2].msgstr, made[3].msgstr = "deux", "{x} {y}", "{x}"
    found = list(files.problems(made))
    assert len(found) == 3
    assert ("not translated" in found[0], "lacks {x}" in found[1], "has {y}" in found[2]) == (True, True, True)


def test_the_command_makes_a_file_and_looks_it_over(tmp_path: Path) -> None:
    file = tmp_path / "fr.po"
    made = CliRunner().invoke(main, ["texts", str(file)])
    assert made.exit_code == 0
    assert len(polib.pofile(str(file))) == len({text.one for text in texts()}) > 500
    before = file.read_bytes()
    checked = CliRunner().invoke(main, ["texts", "--check", str(file)])
    assert (checked.exit_code, "to be looked at" in checked.output, file.read_bytes()) == (1, True, before)
    named = CliRunner().invoke(main, ["texts", str(tmp_path / "French.txt")])
    assert (named.exit_code, "fr.po" in named.output) == (1, True)
    file.write_text("msgid broken")
    broken = CliRunner().invoke(main, ["texts", str(file)])
    assert (broken.exit_code, file.read_text()) == (1, "msgid broken")


def test_scripts_get_their_texts_and_the_rule_of_plurals() -> None:
    source = "const wikkaSaid = new Map([]);\nconst wikkaPlural = (n) => Number(n !== 1);\nrest"
    made = files.up_to_date(
        None, [Text("a", "", "s.js:1"), Text("b", "", "t.py:1"), Text("{n} c", "{n} d", "s.js:2")], "fr"
    )
    made[0].msgstr, made[1].msgstr, made[2].msgstr_plural = 'A"', "B", {0: "{n} C", 1: "{n} D"}
    made.metadata["Plural-Forms"] = "nplurals=2; plural=(n > 1);"
    script = script_of(source, read_catalogue("fr", files.written(made)))
    assert script.splitlines()[0].count("[") == 5
    assert '["a", ["A\\""]]' in script
    assert '["{n} c", ["{n} C", "{n} D"]]' in script
    assert '"B"' not in script
    assert "=> Number((n > 1));" in script
    made.metadata["Plural-Forms"] = "nplurals=2; plural=(alert(1));"
    with pytest.raises(UnreadableTexts):
        script_of(source, read_catalogue("fr", files.written(made)))


def test_names_of_scripts() -> None:
    assert (name_of("en"), name_of("pt-BR")) == ("texts.js", "texts.pt-BR.js")
    assert [language_of(name) for name in ("texts.js", "texts.pt-BR.js", "editor.js", "texts..js")] == [
        "",
        "pt-BR",
        "",
        "",
    ]


def test_a_script_takes_no_rule_that_is_more_than_a_rule() -> None:
    with pytest.raises(UnreadableTexts, match="plurals"):
        script_of("", Catalogue("xx", "X", ENGLISH.texts, {}, "n, fetch('/')"))
