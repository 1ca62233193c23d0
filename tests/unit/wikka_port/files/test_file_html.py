"""Which file a name means, and its HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.support.attack.payloads import payloads
from tests.support.attack.places import OTHER
from tests.support.attack.places import WIKKA as WIKKA_PLACES
from tests.support.well_nested import check
from wikka_port.files.file_html import FilesFound, FoundFile, find_files
from wikka_port.files.file_rows import CurrentFile
from wikka_port.limits import FILE_PAGES_MAX
from wikka_port.markup.document import parse, render
from wikka_port.markup.formats import MARKDOWN, WIKKA
from wikka_port.markup.fragments import FileReference

PNG = CurrentFile(3, "0" * 16, "a" * 64, 3_400, "image/png", 640, 480)
PDF = CurrentFile(2, "0" * 16, "b" * 64, 1_200_000, "application/pdf")
GONE = CurrentFile(4, "0" * 16, "", 0, "image/png")


class Pages:
    """Files of pages, with the calls that were made."""

    def __init__(self, files: Mapping[str, Mapping[str, CurrentFile]]) -> None:
        self.files = files
        self.calls: list[list[str]] = []

    def read(self, names: Sequence[str]) -> dict[str, Mapping[str, CurrentFile]]:
        self.calls.append(list(names))
        return {name: self.files[name] for name in names if name in self.files}


def found(pages: Pages, page: str, *names: str | FileReference, shared: str = "Files") -> list[str]:
    references = [one if isinstance(one, FileReference) else FileReference("", one) for one in names]
    files = find_files(references, page, pages.files.get(page, {}), shared, pages.read)
    return [f"{files[one].page}/{files[one].name}" if one in files else "" for one in references]


def test_a_file_of_the_page_itself_needs_no_call() -> None:
    pages = Pages({"A/B": {"My picture.png": PNG, "plan.dwg": PDF}})
    assert found(pages, "A/B", "my_PICTURE.png", "Plan.DWG") == ["A/B/My picture.png", "A/B/plan.dwg"]
    assert pages.calls == []


def test_the_nearest_page_above_wins_and_the_shared_page_is_last() -> None:
    pages = Pages({"A": {"x.png": PNG, "y.png": PNG}, "A/B": {"x.png": PNG}, "Files": {"y.png": PNG, "z.png": PNG}})
    assert found(pages, "A/B/C", "x.png", "y.png", "z.png", "no.png") == ["A/B/x.png", "A/y.png", "Files/z.png", ""]
    assert pages.calls == [["A/B", "A", "Files"]], "one call for all"


def test_a_removed_file_is_none() -> None:
    pages = Pages({"A": {"x.png": GONE}, "Files": {"x.png": PNG}})
    assert found(pages, "A", "x.png") == ["Files/x.png"]


def test_a_name_with_an_unknown_ending_is_searched_on_the_page_alone() -> None:
    pages = Pages({"Files": {"Version 2.0": PNG}})
    assert found(pages, "A/B", "Version 2.0", "example.org") == ["", ""]
    assert pages.calls == []


def test_a_named_page_is_the_only_one() -> None:
    pages = Pages({"A": {"x.png": PNG}, "Other": {"y.png": PNG}})
    assert found(pages, "A", FileReference("Other", "y.png"), FileReference("Other", "x.png")) == ["Other/y.png", ""]
    assert found(pages, "A", FileReference("A", "x.png"), FileReference("No", "x.png")) == ["A/x.png", ""]
    assert pages.calls == [["Other"], ["No"]]


def test_the_pages_read_have_a_bound() -> None:
    pages = Pages({})
    found(pages, "A", *(FileReference(f"P{n}", "x.png") for n in range(100)))
    assert [len(call) for call in pages.calls] == [FILE_PAGES_MAX]
    assert found(pages, "/".join("abcdefgh" * 20), "x.png") == [""]


WIDTHS = (
    'srcset="/A~2FB/files/x.png?v=3&amp;w=320 320w, /A~2FB/files/x.png?v=3 640w" '
    'sizes="(max-width: 48rem) 100vw, 48rem"'
)


def shown(typed: str, files: Mapping[str, CurrentFile]) -> str:
    document = parse(typed)
    meant = find_files(document.files, "A/B", files, "", lambda names: {})
    return render(document, existing=set(), file=FilesFound("A/B", meant).slot_html)


def test_a_picture_has_its_size_and_its_version() -> None:
    assert shown("[[x.png]]", {"x.png": PNG}) == (
        f'<p><img src="/A~2FB/files/x.png?v=3" {WIDTHS} width="640" height="480" alt="x.png" loading="lazy" '
        'decoding="async"></p>\n'
    )


@pytest.mark.parametrize(
    ("typed", "alt", "said"),
    [("[[x.png]]", "", "x.png"), ("[[x.png]]", "a town", "a town"), ("[[x.png|by night]]", "a town", "by night"),
     ("[[x.png by night]]", "", "by night"), ("[[x.png]]", "Decorative", ""), ("[[x.png|decorative]]", "a town", ""),
     ("[[x.png]]", '"><script>', "&quot;&gt;&lt;script&gt;")],
)  # fmt: skip
def test_the_words_for_a_picture(typed: str, alt: str, said: str) -> None:
    file = CurrentFile(1, "0" * 16, "a" * 64, 10, "image/png", 5, 5, alt)
    assert f' alt="{said}" ' in shown(typed, {"x.png": file})


@pytest.mark.parametrize(
    ("arguments", "sides"),
    [('width="320"', 'width="320" height="240"'), ('height="48"', 'width="64" height="48"'),
     ('width="10" height="10"', 'width="10" height="10"'), ("", 'width="640" height="480"')],
)  # fmt: skip
def test_a_given_side_keeps_the_proportion(arguments: str, sides: str) -> None:
    assert sides in shown(f'{{{{image src="x.png" {arguments}}}}}', {"x.png": PNG})


def test_smaller_pictures_are_offered_if_there_are_some() -> None:
    assert f" {WIDTHS} " in shown("[[x.png]]", {"x.png": PNG})
    assert "srcset" not in shown("[[x.png]]", {"x.png": replace(PNG, media_type="image/gif")})
    assert "srcset" not in shown("[[x.png]]", {"x.png": replace(PNG, width=320)})


def test_any_other_file_is_a_link_with_kind_and_size() -> None:
    link = '<a href="/A~2FB/files/p.pdf?v=2" class="file">{}</a> <span class="file-kind">(Document, PDF, 1.2 MB)</span>'
    assert link.format("p.pdf") in shown("[[p.pdf]]", {"p.pdf": PDF})
    assert link.format("read") in shown("[[p.pdf|read]]", {"p.pdf": PDF})
    assert link.format("get") in shown('{{files download="P.PDF" text="get"}}', {"p.pdf": PDF})
    assert 'class="file">' in shown('{{files download="x.png"}}', {"x.png": PNG})


def test_a_missing_picture_leads_to_where_files_are_added() -> None:
    assert shown('{{image src="x.png" alt="a <b>"}}', {}) == (
        '<p><a href="/A~2FB/files" class="missing" rel="nofollow">a &lt;b&gt;</a></p>\n'
    )
    assert '<a href="/Other/files" class="missing"' in shown("[[file:Other/x.png]]", {})


def test_links_around_pictures() -> None:
    for link, href in (("Cat page", "/Cat_page"), ("https://e.example/?a=b&c", "https://e.example/?a=b&amp;c")):
        assert f'<a href="{href}"' in shown(f'{{{{image src="x.png" link="{link}"}}}}', {"x.png": PNG})
    html = shown("{{image src=\"x.png\" link='javascript:alert(1)' class='a\" b x'}}", {"x.png": PNG})
    assert '<a href="/javascript:alert(1)"><img ' in html
    assert 'class="user-b user-x"' in html


EVIL = [
    'a".png', "a'.png", "javascript:alert(1).png", "<svg onload=alert(1)>.png", "..", "../../x.png", "a/../b.png",
    "a\x00.png", "a\u202egnp.exe", "a.png?x=<script>", "a.png#<script>", "a.svg", "%2e%2e%2f.png", "a&quot;.png",
    'x.png" onerror="alert(1)', "a\ud800.png", "a`b.png", "a;b,c.png",
]  # fmt: skip


@pytest.mark.parametrize("name", EVIL)
def test_no_name_of_a_file_leaves_its_attribute(name: str) -> None:
    """A record with a name that no upload would give it is shown as harmless text, too."""
    safe = name.encode("utf-8", "replace").decode()
    record = CurrentFile(1, "0" * 16, "a" * 64, 10, "image/svg+xml", 1, 1, '" onload="alert(1)')
    one = FoundFile("Page", safe, record)
    for typed in ("[[x.png]]", "{{image src=\"x.png\" title='\"><script>' class='\"><b>' link='\"><i>'}}"):
        document = parse(typed)
        html = render(document, existing=set(), file=FilesFound("Page", dict.fromkeys(document.files, one)).slot_html)
        assert "".join(check(html).text).strip() == ""
        assert "<script" not in html
        assert 'src="/Page/files/' in html
        source = html.partition('src="')[2].partition('"')[0]
        assert "/" not in source.removeprefix("/Page/files/")
        assert ":" not in source


@pytest.mark.parametrize("name", EVIL)
def test_no_name_in_a_text_leaves_its_attribute(name: str) -> None:
    for typed in (
        f"[[{name}]]", f"[[{name}|{name}]]", f"[[file:{name}/{name}]]", f"{{{{image src='{name}' alt='{name}'}}}}",
        f'{{{{files download="{name}" text="{name}"}}}}',
    ):  # fmt: skip
        html = shown(typed, {"x.png": PNG})
        check(html).text  # noqa: B018 - it raises
        assert "<script" not in html
        assert "<svg" not in html


OF_FILES = {
    WIKKA: ("as a file", "as a picture", "as a download", "as a heading of a page"),
    MARKDOWN: ("as a file", "as a picture in HTML", "in front matter", "in a fold", "in an alert", "in elements"),
}


@pytest.mark.parametrize("markup", OF_FILES)
def test_no_payload_runs_in_a_place_for_files(markup: str) -> None:
    """Every other payload of the corpus, with files found and missing; the browser tries them all."""
    ways = [(WIKKA_PLACES if markup == WIKKA else OTHER)[name] for name in OF_FILES[markup]]
    for number, payload in enumerate(payloads()[::2]):
        record = CurrentFile(1, "0" * 16, "a" * 64, 10, "image/png", 1, 1, payload)
        text = ways[number % len(ways)](payload)
        document = parse(text, markup=markup)
        one = FoundFile("Page", "x.png", record)
        for found in ({}, dict.fromkeys(document.files, one)):
            html = render(document, existing=set(), file=FilesFound("Page", found).slot_html)
            check(html).text  # noqa: B018 - it raises
            assert "<script" not in html.lower()
