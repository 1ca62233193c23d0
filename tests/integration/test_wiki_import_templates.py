"""What an import makes of a dump's own templates, and of its main page."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.store_thread import StoreThread
from tests.support.wiki_client import WikiClient
from wikka_port import dump_templates
from wikka_port.cli import main
from wikka_port.first_pages import write_first_pages
from wikka_port.importer import Importer
from wikka_port.markup.links import redirect_target
from wikka_port.pages import Wiki


@pytest.fixture
def wiki(tmp_path: Path) -> Iterator[Wiki]:
    with StoreThread(tmp_path / "store") as store:
        made = Wiki("127.0.0.1", store.port, indexes="application")
        made.prepare()
        yield made
        made.store.close()


def made_dump(folder: Path, pages: str, base: str = "https://made.example/wiki/Main_Page") -> Path:
    """Write a dump; each line of ``pages`` is namespace, title and text with bars between."""
    out = [f'<mediawiki xml:lang="en"><siteinfo><sitename>Made</sitename><base>{base}</base></siteinfo>']
    for number, line in enumerate(pages.strip().split("\n"), 1):
        namespace, title, text = line.strip().split("|", 2)
        stamp = f"2020-01-01T00:00:{number:02}Z"
        out.append(f"<page><title>{title}</title><ns>{namespace}</ns><id>{number}</id>")
        if text.startswith("#REDIRECT"):
            out.append(f'<redirect title="{text.partition("[[")[2].rstrip("]")}" />')
        out.append(f"<revision><id>{number}</id><timestamp>{stamp}</timestamp><contributor><username>Ada</username>")
        out.append(f"</contributor><text>{html.escape(text)}</text></revision></page>")
    file = folder / "made.xml"
    file.write_text("".join([*out, "</mediawiki>"]), encoding="utf-8")
    return file


def command(wiki: Wiki, *words: str, given: str | None = None) -> str:
    done = CliRunner().invoke(
        main, ["import", "--store", wiki.store.address, "--indexes=application", *words], input=given
    )
    assert done.exit_code == 0, done.output
    return done.output


TEMPLATE_PAGES = """
    0|Early|a {{hello|Ada}} {{hi}} {{odd}} b
    10|Template:Hello|Hello {{{1|you}}}<noinclude> doc</noinclude>
    10|Template:Hi|#REDIRECT [[Template:Hello]]
    10|Template:Odd|{{#if:x|y}}
    0|Late|a {{hello|Bob}} b
"""


def test_templates_behind_the_pages_that_call_them_are_expanded(wiki: Wiki, tmp_path: Path) -> None:
    file = made_dump(tmp_path, TEMPLATE_PAGES)
    said = command(wiki, str(file))
    assert "5  pages" in said
    early, late = wiki.page("Early"), wiki.page("Late")
    assert early is not None
    assert late is not None
    assert early.body == "a Hello Ada Hello you y b"
    assert late.body == "a Hello Bob b"


def test_a_dump_from_a_pipe_has_the_templates_that_came_before(wiki: Wiki, tmp_path: Path) -> None:
    text = made_dump(tmp_path, TEMPLATE_PAGES).read_bytes()

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    Importer.begun(wiki, Pipe(text), origin="pipe").run()
    early, late = wiki.page("Early"), wiki.page("Late")
    assert early is not None
    assert late is not None
    assert early.body.startswith("a Ada [hi] [odd] b\n")
    assert late.body == "a Hello Bob b"


def test_templates_are_bounded_in_number_and_characters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pages = "\n".join(f"10|Template:T{number}|{'x' * 100}" for number in range(10))
    file = made_dump(tmp_path, pages)

    def kept() -> int:
        with file.open("rb") as stream:
            stream.seek(0)
            found = dump_templates.read_templates(stream, lambda read_bytes, pages: None)
            assert stream.tell() == 0
        assert found is not None
        return len(found.bodies)

    assert kept() == 10
    monkeypatch.setattr(dump_templates, "DUMP_TEMPLATES_MAX", 7)
    assert kept() == 7
    monkeypatch.setattr(dump_templates, "DUMP_TEMPLATES_CHARS", 350)
    assert kept() == 3


def test_damage_is_reported_though_templates_were_read_before(wiki: Wiki, tmp_path: Path) -> None:
    file = made_dump(tmp_path, TEMPLATE_PAGES)
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole[: whole.index("<title>Late")], encoding="utf-8")
    done = CliRunner().invoke(main, ["import", "--store", wiki.store.address, "--indexes=application", str(file)])
    assert done.exit_code == 1
    assert "truncated" in done.output


def test_the_main_page_of_a_dump_becomes_the_root_page(wiki: Wiki, tmp_path: Path) -> None:
    write_first_pages(wiki)
    file = made_dump(tmp_path, "0|Main Page|words", base="https://made.example/index.php?title=Main_Page&amp;x=y")
    said = command(wiki, str(file))
    assert "--root-page" not in said
    root = wiki.page("HomePage")
    assert root is not None
    assert (root.body, root.author) == ('{{redirect target="Main Page"}}', "WikiSetup")
    number = root.number
    assert "--root-page" not in command(wiki, str(file), "--restart")
    again = wiki.page("HomePage")
    assert again is not None
    assert again.number == number
    wiki.save("HomePage", "ours", author="Ada", note="", base=number)
    said = command(wiki, str(file), "--restart")
    assert "wikka serve --root-page 'Main Page'" in said
    ours = wiki.page("HomePage")
    assert ours is not None
    assert ours.body == "ours"


def test_a_missing_root_page_and_a_missing_main_page_change_nothing(wiki: Wiki, tmp_path: Path) -> None:
    file = made_dump(tmp_path, "4|Made:Start: a|words", base="https://made.example/wiki/Made:Start%3A_a")
    assert "wikka serve --root-page 'Made:Start: a'" in command(wiki, str(file))
    assert wiki.page("HomePage") is None
    write_first_pages(wiki)
    other = made_dump(tmp_path, "0|Other|words")
    assert "--root-page" not in command(wiki, str(other))


def test_the_root_page_leads_to_a_main_page_of_any_name(wiki: Wiki, tmp_path: Path) -> None:
    write_first_pages(wiki)
    name = "Made:A \"b\" 'c' & d"
    command(
        wiki,
        str(
            made_dump(tmp_path, f"4|{html.escape(name)}|words", base="https://m.example/wiki/Made:A_%22b%22_'c'_%26_d")
        ),
    )
    root = wiki.page("HomePage")
    assert root is not None
    assert redirect_target(root.body) == name


FUNCTIONS = """
    0|Seite|[[Bild:A.jpg|mini|links|Schiff]]
    0|Zweite|a {{SEITENNAME}} {{formatnum:1234}} {{art|Boot}} {{art}} {{#if:{{art|x}}|ja|nein}} {{Hauptartikel|Hafen}} b
    0|Dritte|a {{#if:{{nobody}}|ja|nein}} {{lua|Wort}} b
    10|Template:Art|{{#wechsle:{{{1|}}}|Boot=zu Wasser|#standard=zu Lande}}
    10|Template:Lua|{{#invoke:Lua|main|{{{1}}}}}
"""


def test_parser_functions_and_the_words_of_the_dumps_language(wiki: Wiki, tmp_path: Path) -> None:
    file = made_dump(tmp_path, FUNCTIONS)
    file.write_text(file.read_text(encoding="utf-8").replace('xml:lang="en"', 'xml:lang="de"'), encoding="utf-8")
    command(wiki, str(file))
    pages = {name: wiki.page(name) for name in ("Seite", "Zweite", "Dritte", "Template:Art")}
    bodies = {name: page.body for name, page in pages.items() if page is not None}
    assert bodies["Seite"].endswith("/Special:FilePath/A.jpg | picture: A.jpg]] Schiff")
    assert bodies["Zweite"] == "a Zweite 1.234 zu Wasser zu Lande ja → [[Hafen]] b"
    assert bodies["Dritte"].startswith("a nein Wort b\n")
    assert "#wechsle" in bodies["Template:Art"], "the page of a template keeps its source"


BLOCKS = """
    0|Page|{{hello|Ada}}
    0|Other|before {{hello|Bob}} after
    10|Template:Hello|Hello {{{1|you}}}<noinclude> [[Doc]]</noinclude>
    10|Template:Hi|#REDIRECT [[Template:Hello]]
    0|Redirected|{{hi|Eve}}
    10|Template:Linked|See [[Harbour]]
    0|Linking|{{linked}}
"""
NAMES = ("Page", "Other", "Template:Hello", "Redirected", "Linking")


def test_calls_that_are_paragraphs_include_the_page_of_the_template(wiki: Wiki, tmp_path: Path) -> None:
    command(wiki, str(made_dump(tmp_path, BLOCKS)))
    bodies = {name: page.body for name in NAMES if (page := wiki.page(name)) is not None}
    assert bodies == {
        "Page": '{{include page="Template:Hello" 1="Ada"}}',
        "Other": "before Hello Bob after",
        "Template:Hello": "Hello {{{1|you}}}\n\n/*noinclude*/\n[[Doc]]\n/*/noinclude*/",
        "Redirected": '{{include page="Template:Hi" 1="Eve"}}',
        "Linking": "See [[Harbour]]",
    }
    assert set(wiki.backlinks("Template:Hello")) == {"Page", "Template:Hi"}
    assert set(wiki.backlinks("Harbour")) == {"Linking", "Template:Linked"}
    web = WikiClient(wiki)
    assert "<p>Hello Ada" in web.get("/Page").text
    assert "<p>Hello Eve" in web.get("/Redirected").text
    assert ">Doc</a>" in web.get("/Template:Hello").text
    for name in ("Page", "Redirected"):
        assert "Doc" not in web.get(f"/{name}").text.partition("<article")[2].partition("</article>")[0]
    page = wiki.page("Template:Hello")
    assert page is not None
    wiki.save("Template:Hello", "Good day {{{1|you}}}", author="Ada", base=page.number)
    assert "<p>Good day Ada" in web.get("/Page").text, "a change of the template shows in its pages"
    assert "0  revisions stored" in command(wiki, str(tmp_path / "made.xml"))
    assert web.get("/Page/raw?source=1").text == "{{hello|Ada}}"


@pytest.mark.parametrize("words", [("--templates", "expand"), ("--namespaces", "0"), ("--limit", "1")])
def test_calls_are_expanded_on_request_and_where_their_templates_do_not_come(
    wiki: Wiki, tmp_path: Path, words: tuple[str, str]
) -> None:
    command(wiki, *words, str(made_dump(tmp_path, BLOCKS)))
    page = wiki.page("Page")
    assert page is not None
    assert page.body == "Hello Ada"
