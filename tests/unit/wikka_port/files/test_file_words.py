"""Files in words."""

from __future__ import annotations

import pytest

from wikka_port.files.content_types import TYPES
from wikka_port.files.file_words import kind_text, size_text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (3_400_000, "3.4 MB"),
        (120_000_000, "120 MB"),
        (999_999_999, "1.0 GB"),
        (5 * 10**15, "5000 TB"),
    ],
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_kinds() -> None:
    kinds = {one.endings[0]: kind_text(one.media_type) for one in TYPES}
    assert kinds["png"] == "Picture, PNG"
    assert (kinds["pdf"], kinds["zip"], kinds["csv"]) == ("Document, PDF", "Archive, ZIP", "Text, CSV")
    assert (kinds["mp3"], kinds["mp4"], kinds["docx"]) == ("Sound, MP3", "Film, MP4", "Document, DOCX")
    assert kind_text("model/of-a-newer-version") == "File"
