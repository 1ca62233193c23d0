"""Names of pages from names of files, by the rules of the program that wrote the folder."""

from __future__ import annotations

import pytest

from wikka_port.imports.markdown_map import FolderMap
from wikka_port.imports.markdown_names import NameReport, origin_of, page_names
from wikka_port.imports.source_forms import DOKUWIKI, MARKDOWN, form_of_folder

A, B = "0123456789abcdef0123456789abcdef", "f" * 32


def names(paths: list[str], origin: str = "plain", main_page: str = "HomePage", prefix: str = "") -> dict[str, str]:
    return page_names(paths, origin, NameReport(), main_page=main_page, prefix=prefix)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("paths", "hidden", "origin"),
    [
        (["Home.md", "Page-Name.md"], [], "github"),
        (["Home.md", "notes/Page Name.md"], [], "plain"),
        (["a.md", "b.md"], [".obsidian"], "obsidian"),
        (["a.md"], [".order"], "azure"),
        ([f"Title {A}.md", f"Title {A}/Sub {B}.md"], [], "notion"),
        (["README.md", "docs/a.md"], [], "plain"),
    ],
)
def test_the_program_is_known_by_its_signs(paths: list[str], hidden: list[str], origin: str) -> None:
    assert origin_of(paths, hidden) == origin


def test_each_origin_has_its_rules() -> None:
    assert names(["Page-Name.md", "_Sidebar.md"], "github") == {"Page-Name.md": "Page Name", "_Sidebar.md": "Sidebar"}
    assert names(["A-B%2DC.md"], "azure") == {"A-B%2DC.md": "A B-C"}
    assert names(["Folder/First_Steps.markdown", "x.png"]) == {"Folder/First_Steps.markdown": "Folder/First Steps"}
    found = names([f"Notes {A}.md", f"Notes {A}/Sub {B}.md", f"Twice {A}.md", f"Twice {B}.md"], "notion")
    assert sorted(found.values()) == ["Notes", "Notes/Sub", f"Twice {A}", f"Twice {B}"]


def test_main_pages_have_the_names_of_their_folders() -> None:
    found = names(["README.md", "Home.md", "Guide/README.md", "Guide/index.md", "Both/README.md", "Both.md"])
    assert found == {
        "Home.md": "HomePage",
        "README.md": "README",
        "Guide/README.md": "Guide",
        "Guide/index.md": "Guide/index",
        "Both.md": "Both",
        "Both/README.md": "Both/README",
    }
    assert names(["Home.md"], main_page="")["Home.md"] == "Home"
    assert names(["Home.md", "a.md"], main_page="Old/Notes", prefix="Old/Notes") == {
        "Home.md": "Old/Notes",
        "a.md": "Old/Notes/a",
    }


def test_collisions_and_names_that_are_none_are_reported() -> None:
    report = NameReport()
    found = page_names(
        ["a b.md", "a_b.md", "A b.md", "bad\x07.md", f"{'x' * 1100}.md", "..md", "..%2F...md"],
        "plain",
        report,
        main_page="",
    )
    assert found["a b.md"] == "a b"
    assert found["a_b.md"] == "a b (2)"
    assert report.renamed == ["'a_b.md': called a b (2), since 'a b.md' is a b"]
    assert report.alike == ["A b, a b"]
    assert len(report.refused) == 2


def test_paths_are_found_as_their_programs_find_them() -> None:
    folder = FolderMap(
        names(["Home.md", "sub/Page-Name.md", "en/x.md"], "github"), ["a/Pic.png", "b/Pic.png", "c/q.png"], "github"
    )
    assert folder.find("Page Name", "Home.md") == "sub/Page-Name.md"
    assert folder.find("page-name", "Home.md") == "sub/Page-Name.md"
    assert folder.find("Pic.png", "Home.md") is None, "two have this name"
    assert folder.find("q.png", "Home.md") == "c/q.png"
    assert folder.find("/a/pic.png", "sub/Page-Name.md") == "a/Pic.png"
    assert folder.find("../../../etc/passwd", "sub/Page-Name.md") is None
    assert folder.find("/fr/en/x", "Home.md") == "en/x.md"


def test_the_form_of_a_folder_is_guessed() -> None:
    assert form_of_folder(["a.md", "b/"]) == MARKDOWN
    assert form_of_folder(["data/", "data/pages/", "data/meta/", "README.md"]) == DOKUWIKI
    assert form_of_folder(["pages/", "meta/", "attic/", "README.md"]) == DOKUWIKI
    assert form_of_folder(["a.txt"]) is None
