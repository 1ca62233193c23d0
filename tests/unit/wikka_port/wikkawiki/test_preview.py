"""What a page of WikkaWiki will lack here."""

from __future__ import annotations

import pytest

from wikka_port.wikkawiki.preview import differences


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("==Heading== **bold** {{toc}} {{image url=\"a.png\" alt=\"a\"}} \"\"<b>x</b> & y\"\"", []),
        ("{{dbinfo}} {{DbInfo all=\"1\"}}", ["{{dbinfo}}: not here, it tells strangers what the wiki runs on"]),
        ("{{myown x=\"1\"}}", ["{{myown}}: there is no such action here"]),
        ("%%{{dbinfo}}%%", []),
        (
            "==a \"\"<b style='x' title=\"t\">b</b><script>s()</script>\"\"==\n||\"\"<iframe src='x'></iframe>\"\"||",
            ["embedded HTML without <iframe>, <script>, style of <b>, title of <b>"],
        ),
        ("[[A]] " * 3, []),
    ],
)  # fmt: skip
def test_differences(body: str, said: list[str]) -> None:
    assert differences(body) == said


def test_a_page_over_a_bound_is_named() -> None:
    (found,) = differences(" ".join(f"[[Page{number}]]" for number in range(6_000)))
    assert "more than 5,000 pages" in found
