"""A wiki as a folder of HTML: no link leads nowhere, nothing is hidden badly, and half a folder never has the name."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner, Result

from tests.integration.test_wiki_export import store_of, wiki_in
from tests.support.exported_wiki import add_file, anybody, fill, png_of
from tests.support.seeds import seed
from wikka_port.cli import main
from wikka_port.exchange import export_file, markdown_folder, static_site, written_pages
from wikka_port.exchange.page_source import StorePages
from wikka_port.exchange.records import living_pages
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege
from wikka_port.visitors import NOBODY, Visitor

SEED = seed(392)
BY = By("Ada", "account", "")
NAMES = ("HomePage", "homepage", "index", "Index", "A", "A/B", "CON", "..", "Who?", "files/Page", 'Quote " and <tag>')
TEXT = """==Start==
[[index | words]] [[homepage]] [[A/B]] [[..]] [[Who?]] [[Quote " and <tag>]] [[Nowhere]]
[[private/Secret]] CategoryShips
[[Ship.png]] {{image url="https://foreign.example/x.png" alt="foreign"}} [[drawing.svg]] [[page.html]] {{files}}
{{recentchanges}} {{pageindex}} {{searchform}} {{newpage}} {{gallery}} {{include page="A"}} {{calendar}} {{who}}
""<img src="https://foreign.example/y.png"><a href="/HomePage/edit">edit</a>"" http://foreign.example/
%%(python)
print("x")
%%
"""


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    print("seed", SEED)
    with wiki_in(tmp_path_factory.mktemp("wiki")) as made:
        fill(made, SEED, NAMES)
        for name, text in (
            ("HomePage", TEXT),
            ("CategoryShips", "{{category}}"),
            ("private/Secret", "WORTGEHEIM HomePage"),
            ("Old", '{{redirect target="HomePage"}}'),
        ):
            made.save(name, text, author="Ada", base=made.head(name).number, markup="wikka", autolink=True)
        made.rights.change("HomePage", made.page("HomePage").rights, "Ada", {Privilege.READ: "*"})
        for name, content in (
            ("Ship.png", png_of(4, 4)),
            ("drawing.svg", b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'),
            ("page.html", b"<html><script>alert(1)</script></html>"),
            ("gone.txt", b"gone"),
        ):
            token = add_file(made.files, "HomePage", name, content, BY)
        made.files.remove("HomePage", "gone.txt", token, BY, allow=anybody)
        yield made


def export(wiki: Wiki, out: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["export", "--to", "html", str(out), *words, *store_of(wiki)])


@pytest.fixture(scope="module")
def public(wiki: Wiki, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    done = export(wiki, out, "--readable-by", "anonymous", "--site-name", "Ships")
    assert done.exit_code == 0, done.output
    return out


def pages_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.html")}


@pytest.mark.parametrize("words", [("--readable-by", "anonymous"), ()])
def test_every_address_leads_to_a_file_and_nothing_is_loaded_from_elsewhere(
    wiki: Wiki, tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "site"
    assert export(wiki, folder, *words).exit_code == 0
    seen = 0
    for name, html in pages_of(folder).items():
        for tag, attributes in Tags(html).found:
            assert tag not in ("script", "form", "iframe", "style"), name
            for key in ("href", "src"):
                address = attributes.get(key)
                if address is None or address.startswith("#"):
                    continue
                parts = urlsplit(address)
                if parts.scheme:
                    assert (tag, key) == ("a", "href"), (name, address)
                    continue
                target = ((folder / name).parent / unquote(parts.path)).resolve()
                assert target.is_file(), (name, address)
                assert target.is_relative_to(folder), (name, address)
                seen += 1
    assert seen > 100
    assert {path.name for path in folder.iterdir()} == {"index.html", "style.css", "icon.svg", "pages", "files"}


def test_a_page_has_its_text_its_pictures_its_lists_and_its_last_edit(public: Path) -> None:
    html = (public / "pages/HomePage.html").read_text()
    assert '<img src="../files/HomePage/Ship.png"' in html
    assert "Ships</title>" in html
    assert 'href="../pages/index.html"' in html or 'href="../pages/index%25~' in html
    assert "../files/HomePage/page.html.txt" in html
    assert "../files/HomePage/drawing.svg.txt" in html
    assert "gone.txt" not in html
    assert "saved <time" in html
    assert '<span class="author">Ada</span>' in html
    assert 'href="../pages/CategoryShips.html"' in html.partition("static-links")[2]
    assert ">Old</a>" in html.partition("static-links")[2], "the redirect links to it"
    assert ">HomePage</a>" in (public / "pages/CategoryShips.html").read_text()
    assert 'leads to <a href="../pages/HomePage.html">' in (public / "pages/Old.html").read_text()


def test_only_what_the_reader_may_read_is_there(wiki: Wiki, public: Path, tmp_path: Path) -> None:
    everything = pages_of(public)
    assert not any("WORTGEHEIM" in html or "Secret.html" in html for html in everything.values())
    assert "pages/private/Secret.html" not in everything
    assert export(wiki, tmp_path / "all").exit_code == 0
    assert "WORTGEHEIM" in (tmp_path / "all/pages/private/Secret.html").read_text()
    assert "Secret.html" in (tmp_path / "all/pages/HomePage.html").read_text()


def test_an_index_of_several_files_has_every_page_once(
    wiki: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_site, "STATIC_NAMES", 3)
    assert export(wiki, tmp_path / "site").exit_code == 0
    found: list[Any] = []
    files = sorted((tmp_path / "site").glob("index*.html"))
    for file in files:
        listed = file.read_text().partition('class="letter"')[2]
        found += [one["href"] for tag, one in Tags("<x " + listed).found if "pages/" in (one.get("href") or "")]
    assert len(found) == len(set(found)) == len(list((tmp_path / "site/pages").rglob("*.html")))
    assert len(files) == -(-len(found) // 3)


def test_the_index_says_who_wrote_a_page_last_and_when(public: Path) -> None:
    index = (public / "index.html").read_text()
    line = next(line for line in index.splitlines() if line.startswith("<li>") and ">HomePage</a>" in line)
    assert "<time datetime=" in line
    assert '<span class="author">Ada</span>' in line


class Killed(BaseException):
    pass


def killed_export(wiki: Wiki, out: Path, at: int, visitor: Visitor = static_site.OPERATOR) -> None:
    """Write the site until ``at`` pages were read and written, all of which are recorded by then."""

    def progress(read: int, written: int) -> None:
        if read + written == at:
            raise Killed

    with pytest.raises(Killed):
        static_site.write_site(wiki, visitor, static_site.WikiConfig(), out, progress)


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 1)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("step", [1, 9, 22, 25])
def test_a_killed_export_leaves_no_folder_of_the_name_and_the_next_one_continues_it(
    wiki: Wiki, tmp_path: Path, step: int
) -> None:
    out = tmp_path / "site"
    killed_export(wiki, out, step)
    assert [path.name for path in tmp_path.iterdir()] == ["site.part"]
    done = export(wiki, out)
    assert done.exit_code == 0
    assert export(wiki, tmp_path / "anew").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anew", "site"]
    assert bytes_of(out) == bytes_of(tmp_path / "anew")
    assert ("were written by an earlier export" in done.stderr) is (step > 20)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("one_by_one")
def test_a_continued_export_has_nothing_of_pages_that_were_changed_hidden_or_damaged_meanwhile(
    wiki: Wiki, tmp_path: Path
) -> None:
    out, part = tmp_path / "site", tmp_path / "site.part"
    for name in ("Edited", "Hidden", "Linked", "Damaged"):
        wiki.save(name, "a text of before", author="Ada", base=0)
    killed_export(wiki, out, 2 * len(pages_of_wiki(wiki)), NOBODY)
    assert (part / "pages/Hidden.html").is_file()
    wiki.save("Edited", "a text of after [[Linked]]", author="Eve", base=1)
    wiki.rights.change("Hidden", wiki.rights.of(["Hidden"])["Hidden"], "Ada", {Privilege.READ: "Ada"})
    (part / "pages/Damaged.html").write_bytes(b"")
    report = static_site.write_site(wiki, NOBODY, static_site.WikiConfig(), out)
    assert 0 < report.kept < report.pages
    assert not (out / "pages/Hidden.html").exists()
    assert "a text of after" in (out / "pages/Edited.html").read_text()
    assert ">Edited</a>" in (out / "pages/Linked.html").read_text()
    assert "a text of before" in (out / "pages/Damaged.html").read_text()
    assert "Hidden.html" not in (out / "index.html").read_text()
    assert {path.name for path in out.iterdir()} == {"index.html", "style.css", "icon.svg", "pages", "files"}


@pytest.mark.usefixtures("one_by_one")
def test_a_continued_export_copies_only_the_files_that_are_not_there(wiki: Wiki, tmp_path: Path) -> None:
    out, files = tmp_path / "site", tmp_path / "site.part" / "files"
    for name in ("Held", "Held/Below"):
        wiki.save(name, "text", author="Ada", base=0)
    token = {
        place: add_file(wiki.files, *place.rsplit("/", 1), content, BY)
        for place, content in (
            ("Held/kept.txt", b"kept"),
            ("Held/damaged.txt", b"as it was written"),
            ("Held/replaced.txt", b"at first"),
            ("Held/Below/equal.txt", b"at first"),
            ("Held/lost.txt", b"lost"),
            ("Held/removed.txt", b"removed"),
            ("Held/one.txt", b"twice"),
            ("Held/Below/two.txt", b"twice"),
        )
    }
    killed_export(wiki, out, 2 * len(list(living_pages(StorePages(wiki)))))
    kept = (files / "Held/kept.txt").stat().st_ino
    (files / "Held/damaged.txt").write_bytes(b"as it is not now.")
    (files / "Held/lost.txt").unlink()
    (files / "Held/lost.txt").mkdir()
    (files / "Held/lost.txt/x").write_bytes(b"in the way")
    (files.parent / ".wikka/content").write_bytes(b"half a file")
    for name in ("Held/one.txt", "Held/Below/two.txt"):  # paths of one content that are links to another one's now
        (files / name).unlink()
        (files / name).hardlink_to(files / "Held/kept.txt")
    wiki.files.remove("Held", "removed.txt", token["Held/removed.txt"], BY, allow=anybody)
    add_file(wiki.files, "Held", "replaced.txt", b"at last", BY, token["Held/replaced.txt"])
    report = static_site.write_site(wiki, static_site.OPERATOR, static_site.WikiConfig(), out)
    there = {path.name: path.read_bytes() for path in (out / "files/Held").iterdir() if path.is_file()}
    assert there == {
        "kept.txt": b"kept",
        "damaged.txt": b"as it was written",
        "replaced.txt": b"at last",
        "lost.txt": b"lost",
        "one.txt": b"twice",
    }
    assert (out / "files/Held/Below/two.txt").read_bytes() == b"twice"
    assert (out / "files/Held/Below/equal.txt").read_bytes() == b"at first"
    assert (out / "files/Held/kept.txt").stat().st_ino == kept
    assert 0 < report.kept_files < report.files
    static_site.write_site(wiki, static_site.OPERATOR, static_site.WikiConfig(), tmp_path / "anew")
    assert bytes_of(out) == bytes_of(tmp_path / "anew")
    for name in ("Held/Below", "Held"):
        wiki.mover.delete(name, BY)


def pages_of_wiki(wiki: Wiki) -> list[str]:
    """Return the names of the pages that everybody may read."""
    return [page.record.name for page in StorePages(wiki, lambda _name, rights: not rights.lists).pages()]


@pytest.mark.usefixtures("one_by_one")
def test_what_an_export_for_another_reader_has_written_is_not_taken(wiki: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "site"
    killed_export(wiki, out, 25)
    report = static_site.write_site(wiki, NOBODY, static_site.WikiConfig(), out)
    assert report.kept == 0
    assert not [name for name in bytes_of(out) if "Secret" in name]
    (tmp_path / "other.part" / ".wikka").mkdir(parents=True)
    (tmp_path / "other.part" / ".wikka" / "written").write_bytes(b"no database" * 1000)
    assert static_site.write_site(wiki, NOBODY, static_site.WikiConfig(), tmp_path / "other").kept == 0


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("at", ["a page", "its end"])
def test_a_site_has_nothing_of_a_stopped_export_of_another_form(
    wiki: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """A folder of Markdown has everything; a site may be for everybody."""
    out, last = tmp_path / "site", len(list(StorePages(wiki).pages()))

    def die(*_given: object) -> None:
        raise Killed

    def progress(pages: int) -> None:
        if at == "a page" and pages == last:
            raise Killed

    monkeypatch.setattr(export_file, "sync_all", lambda: None)
    monkeypatch.setattr(markdown_folder, "sync_all", die)  # before the folder gets its name
    with pytest.raises(Killed):
        markdown_folder.write_folder(StorePages(wiki, progress=progress), out, convert=False)
    assert b"WORTGEHEIM" in b"".join(bytes_of(tmp_path / "site.part").values())
    assert static_site.write_site(wiki, NOBODY, static_site.WikiConfig(), out).pages > 0
    assert b"WORTGEHEIM" not in b"".join(bytes_of(out).values())
    assert {path.name for path in out.iterdir()} == {"index.html", "style.css", "icon.svg", "pages", "files"}


def test_a_file_in_the_place_of_the_folder_is_said(wiki: Wiki, tmp_path: Path) -> None:
    (tmp_path / "site.part").write_bytes(b"of an export of one file")
    refused = export(wiki, tmp_path / "site")
    assert (refused.exit_code, "none of an export" in refused.output) == (1, True)


def test_nothing_that_is_there_is_replaced(wiki: Wiki, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "mine.part").mkdir()
    (tmp_path / "mine.part/letter.txt").write_text("mine")
    for name, said in (("site", "is there already"), ("mine", "none of an export")):
        refused = export(wiki, tmp_path / name)
        assert refused.exit_code == 1
        assert said in refused.output
    assert (tmp_path / "mine.part/letter.txt").read_text() == "mine"


def test_a_page_that_goes_meanwhile_is_said_to_be_gone(wiki: Wiki, tmp_path: Path) -> None:
    wiki.save("Going", "HomePage", author="Ada", base=0)

    def progress(read: int, written: int) -> None:
        if written == 1 and wiki.page("Going") is not None:
            wiki.mover.delete("Going", BY)

    # the page's key is not the lowest, so it is written after the first one
    static_site.write_site(wiki, static_site.OPERATOR, static_site.WikiConfig(), tmp_path / "site", progress)
    assert "deleted or renamed" in (tmp_path / "site/pages/Going.html").read_text()


def test_the_command_says_what_is_wrong(wiki: Wiki, tmp_path: Path) -> None:
    for words in (("--language", "xx"), ("--readable-by", "Nobody Known"), ("--convert",)):
        done = export(wiki, tmp_path / "site", *words)
        assert done.exit_code in (1, 2), words
        assert "Traceback" not in done.output, words
    assert list(tmp_path.iterdir()) == []
