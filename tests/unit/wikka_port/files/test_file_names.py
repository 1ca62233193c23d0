"""Names of files: one stored form, nothing that deceives a reader, and a header that every browser reads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.files.file_names import (
    MAX_FILE_NAME_BYTES,
    InvalidFileName,
    clean_file_name,
    content_disposition,
    ending_of,
    with_ending,
)


@pytest.mark.parametrize(
    ("given_name", "stored"),
    [
        ("photo.png", "photo.png"),
        ("C:\\fotos\\Grüße.PNG", "Grüße.PNG"),
        ("/etc/../a/b.txt", "b.txt"),
        ("Gru\u0308ße.png", "Grüße.png"),  # as macOS sends it
        ("a[1]:b?.txt", "a-1--b-.txt"),
        ("a|b#c%2F{{d}}.txt", "a-b-c-2F--d--.txt"),
        (".htaccess", "htaccess"),
        ("..", None),
        ("...png", "png"),
        ("a.txt. . ", "a.txt"),
        ("  two   blanks .txt", "two blanks .txt"),
        ("my_file-1.tar.gz", "my_file-1.tar.gz"),
        ("日本語.png", "日本語.png"),
        ("می‌خواهم.txt", "می‌خواهم.txt"),  # the joiner belongs to the word
        ("CON", None),
        ("con.txt", None),
        ("lpt1.tar.gz", None),
        ("console.txt", "console.txt"),
        ("", None),
        ("???", None),
        ("photo\u202egnp.exe", None),
        ("a\u200b.png", None),
        ("a\x00.png", None),
        ("a\nb.png", None),
        ("a\ud800.png", None),
        ("\ufeffa.png", None),
        ("a\u2028b.png", None),
        ("x" * 300, None),
    ],
)
def test_stored_names(given_name: str, stored: str | None) -> None:
    if stored is None:
        with pytest.raises(InvalidFileName, match="cannot be the name of a file"):
            clean_file_name(given_name)
    else:
        assert clean_file_name(given_name) == stored


@settings(max_examples=150)
@given(st.text(max_size=40) | st.text("abÄ./\\:_- \u0308", max_size=12))
def test_a_stored_name_is_stored_as_it_is(text: str) -> None:
    try:
        name = clean_file_name(text)
    except InvalidFileName:
        return
    assert clean_file_name(name) == name
    assert 0 < len(name.encode()) <= MAX_FILE_NAME_BYTES
    assert not set(name) & set('/\\<>:"|?*[]{}#%\r\n\x00')
    assert name[0] not in ". "
    assert name[-1] not in ". "


def test_a_long_name_keeps_its_ending_and_whole_characters() -> None:
    name = clean_file_name("ü" * 150 + ".tiff")
    assert name == "ü" * 97 + ".tiff"
    assert len(name.encode()) == MAX_FILE_NAME_BYTES - 1


def test_endings() -> None:
    assert [ending_of(name) for name in ("a.PNG", "a.tar.gz", "a", ".png", "a.", "a.not ending", "a." + "x" * 11)] == [
        "png", "gz", "", "", "", "", "",
    ]  # fmt: skip
    assert with_ending("a.b.jpg", "png", replace=True) == "a.b.png"
    assert with_ending("run.bat", "txt", replace=False) == "run.bat.txt"
    assert with_ending("a" * 199, "txt", replace=False) == "a" * 196 + ".txt"


def test_the_header_of_a_download() -> None:
    assert content_disposition("a b.png", inline=True) == 'inline; filename="a b.png"'
    assert content_disposition("Grüße;1.txt", inline=False) == (
        "attachment; filename=\"Gr__e_1.txt\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%3B1.txt"
    )


@settings(max_examples=100)
@given(st.text(max_size=20))
def test_no_name_ends_the_header(text: str) -> None:
    try:
        header = content_disposition(clean_file_name(text), inline=False)
    except InvalidFileName:
        return
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
