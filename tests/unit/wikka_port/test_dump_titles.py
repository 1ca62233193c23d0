"""What a dump's functions know of its other pages and of the time: {{#ifexist:}} and {{CURRENTYEAR}} in an import."""

from __future__ import annotations

import io

import pytest

from wikka_port import dump_templates
from wikka_port.dump import DumpReader
from wikka_port.dump_templates import Titles, read_templates
from wikka_port.import_pages import PartReader

NAMES = ((-2, "Media"), (-1, "Special"), (0, ""), (1, "Diskussion"), (6, "Datei"), (10, "Vorlage"), (14, "Kategorie"))
NAMESPACES = "".join(f'<namespace key="{key}" case="first-letter">{name}</namespace>' for key, name in NAMES)
SITE = f"<siteinfo><sitename>S</sitename><base>http://s/wiki/X</base><namespaces>{NAMESPACES}</namespaces></siteinfo>"


def page(title: str, *texts: str, redirect: str = "") -> str:
    head = f'<redirect title="{redirect}" />' if redirect else ""
    revisions = "".join(
        f"<revision><timestamp>{2010 + year}-05-03T10:30:15Z</timestamp><text>{text}</text></revision>"
        for year, text in enumerate(texts)
    )
    return f"<page><title>{title}</title>{head}{revisions}</page>"


PAGES = (
    page("Hafen", "words"),
    page("Alt", "#REDIRECT [[Hafen]]", redirect="Hafen"),
    page("Kategorie:Obst", "words"),
    page("Datei:Bild.png", "words"),
    page("Vorlage:Link", "{{#ifexist:{{{1}}}|[[{{{1}}}]]|{{{1}}} (none)}}"),
    page("Diskussion:Hafen", "words"),
)


def bodies(*pages: str, can_go_back: bool = True, end: str = "</mediawiki>") -> dict[str, list[str]]:
    """The converted texts of the pages, by title."""
    data = f'<mediawiki version="0.10" xml:lang="de">{SITE}{"".join(pages)}{end}'.encode()
    templates = read_templates(io.BytesIO(data), lambda read_bytes, pages: None) if can_go_back else None
    reader = PartReader(DumpReader(io.BytesIO(data)), templates=templates)
    return {part.name: [revision.body for revision in part.revisions] for part in reader}


def answer(title: str, *pages: str) -> str:
    return bodies(page("Seite", f"{{{{#ifexist:{title}|yes|no}}}}"), *PAGES, *pages)["Seite"][0]


@pytest.mark.parametrize(
    "title",
    [
        *("Hafen", "hafen", " Hafen ", "_Hafen_", ":Hafen", "Hafen#Teil", "&#72;afen", "Alt"),  # a redirect, too
        *("Kategorie:Obst", "category:obst", ":Kategorie:Obst", "Datei:Bild.png", "Image:bild.png", "Bild:Bild.png"),
        *("Media:Bild.png", "Vorlage:Link", "Template:link", "Diskussion:Hafen", "Talk:Hafen", "Seite"),
    ],
)
def test_pages_of_the_dump_exist(title: str) -> None:
    assert answer(title) == "yes"


@pytest.mark.parametrize(
    "title",
    [
        *(
            "Hafenstadt",
            "HAFEN",
            "Obst",
            "",
            "#Teil",
            "::Hafen",
            "Haf[en",
            "en:Hafen",
            "wikt:Hafen",
            "Datei:Anders.png",
        ),
        *("Diskussion:Alt", "/Hafen", "x" * 300),
    ],
)
def test_others_do_not(title: str) -> None:
    assert answer(title) == "no"


@pytest.mark.parametrize("title", ["Special:Version", "Media:Anders.png"])
def test_what_no_dump_knows_is_left_undecided(title: str) -> None:
    assert "|!|(c:folded)||" in answer(title)


def test_pages_may_stand_behind_the_call_and_names_are_those_of_the_language() -> None:
    found = bodies(page("A", "{{#ifexist:B|yes|no}} {{link|B}} {{link|C}}"), *PAGES, page("B", "{{#ifexist:A|yes|no}}"))
    assert (found["A"], found["B"]) == (["yes [[B]] C (none)"], ["yes"])


def test_a_branch_that_is_not_taken_leaves_nothing() -> None:
    assert "Hafen" not in answer("Nirgends|[[Hafen]]|x")


def test_without_a_first_pass_nobody_knows_the_titles() -> None:
    found = bodies(*PAGES, page("A", "x {{#ifexist:Hafen|yes|none}}"), can_go_back=False)["A"][0]
    assert found.startswith("x none")
    assert "#ifexist" in found


def test_titles_of_a_damaged_dump_are_not_known() -> None:
    data = f'<mediawiki version="0.10">{SITE}{page("A", "x")}'.encode()
    templates = read_templates(io.BytesIO(data), lambda read_bytes, pages: None)
    assert templates is not None
    assert templates.titles.has("A") is None


def test_titles_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_templates, "DUMP_TITLES_MAX", 3)

    def has(count: int, title: str) -> bool | None:
        titles = Titles()
        for number in range(count):
            titles.add(f"T{number}")
        assert titles.has(title) is None
        titles.finish()
        return titles.has(title)

    assert [has(3, "T2"), has(3, "T3"), has(4, "T2"), has(0, "T0")] == [True, False, None, False]
    assert has(2, "T\ud800") is False


def test_now_is_the_time_of_each_revision() -> None:
    found = bodies(page("A", "{{CURRENTYEAR}}", "{{#time:Y-m-d}} {{#time:Y|-1 year}}"))["A"]
    assert found == ["2010", "2011-05-03 2010"]
