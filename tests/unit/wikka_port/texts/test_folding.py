"""Texts in templates: put in once, with values where the language wants them, and nothing asked at a view."""

from __future__ import annotations

import pytest
from jinja2 import DictLoader, Environment

from wikka_port.texts.catalogue import ENGLISH, Catalogue, read_catalogue
from wikka_port.texts.folding import speak_in

GERMAN = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

msgid "Save & go"
msgstr "Speichern & los"

msgid "<b>%(name)s</b> by %(who)s, 100%%"
msgstr "von %(who)s, 100%%: <b>%(name)s</b>"

msgid "%(n)s edit of %(name)s"
msgid_plural "%(n)s edits of %(name)s"
msgstr[0] "%(n)s Bearbeitung von %(name)s"
msgstr[1] "%(n)s Bearbeitungen von %(name)s"
"""
TEMPLATES = {
    "constant": "{% for one in ['Save & go'|t] %}{{ one }}{% endfor %} <i title=\"{{ 'Save & go'|t }}\">",
    "values": "{% trans name=page, who=visitor.name %}\n<b>{{ name }}</b> by\n{{ who }}, 100%{% endtrans %}",
    "plural": "{% trans n=count, name=page %}{{ n }} edit of {{ name }}"
    "{% pluralize %}{{ n }} edits of {{ name }}{% endtrans %}",
}
HOSTILE = "<x>%s%(name)s{0}"
ESCAPED = "&lt;x&gt;%s%(name)s{0}"


def rendered(catalogue: Catalogue, name: str, **values: object) -> str:
    environment = Environment(loader=DictLoader(TEMPLATES), autoescape=True)
    speak_in(environment, catalogue)
    return environment.get_template(name).render(values)


@pytest.mark.parametrize(
    ("catalogue", "said"), [(ENGLISH, "Save &amp; go"), (read_catalogue("de", GERMAN), "Speichern &amp; los")]
)
def test_a_constant(catalogue: Catalogue, said: str) -> None:
    assert rendered(catalogue, "constant") == f'{said} <i title="{said}">'


def test_values_are_escaped_and_stand_where_the_language_has_them() -> None:
    values = {"page": HOSTILE, "visitor": {"name": "%"}}
    assert rendered(ENGLISH, "values", **values) == f"<b>{ESCAPED}</b> by %, 100%"
    assert rendered(read_catalogue("de", GERMAN), "values", **values) == f"von %, 100%: <b>{ESCAPED}</b>"


@pytest.mark.parametrize(("count", "word"), [(1, "Bearbeitung"), (2, "Bearbeitungen"), (0, "Bearbeitungen")])
def test_plurals(count: int, word: str) -> None:
    german = read_catalogue("de", GERMAN)
    assert rendered(german, "plural", count=count, page=HOSTILE) == f"{count} {word} von {ESCAPED}"
    assert rendered(ENGLISH, "plural", count=1, page="P") == "1 edit of P"


def test_a_view_asks_for_no_text() -> None:
    asked: list[str] = []

    class Noting(Catalogue):
        def gettext(self, text: str) -> str:
            asked.append(text)
            return text

    environment = Environment(loader=DictLoader(TEMPLATES), autoescape=True)
    speak_in(environment, Noting("xx", "X", ENGLISH.texts))
    templates = [environment.get_template(name) for name in ("constant", "values")]
    assert len(asked) >= 3
    asked.clear()
    for template in templates:
        template.render(page="P", visitor={"name": "A"})
    assert asked == []
