"""Code whose language has a renderer is a picture with its code below."""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from html import unescape

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.config import FileConfig
from wikka_port.markup.code_blocks import DRAWN_URL_MAX, checked_renderer, use_renderers

KROKI = "https://kroki.example/mermaid/svg/{code}"
CODE = 'graph TD; A["<b>&"] --> B'
IN_FORMATS = {"markdown": f"```mermaid\n{CODE}\n```\n", "wikka": f"%%(mermaid)\n{CODE}\n%%"}


@pytest.fixture(autouse=True)
def renderers() -> Iterator[None]:
    yield
    use_renderers({})


def shown(markup: str, text: str, address: str = KROKI, **files: object) -> str:
    web = WikiClient(files=FileConfig(renderers=(("mermaid", address),), **files))  # type: ignore[arg-type]
    web.wiki.save("Page", text, author="Ann", base=0, markup=markup)
    return web.get("/Page").text.partition("<article")[2].partition("</article>")[0]


def address_in(html: str) -> str:
    return unescape(html.partition('<img src="')[2].partition('"')[0])


@pytest.mark.parametrize("markup", IN_FORMATS)
def test_a_picture_is_asked_for_as_kroki_takes_it(markup: str) -> None:
    html = shown(markup, IN_FORMATS[markup], foreign_pictures="all")
    before, _, code = address_in(html).rpartition("/")
    assert before == "https://kroki.example/mermaid/svg"
    assert zlib.decompress(urlsafe_b64decode(code)).decode() == CODE
    assert "&lt;b&gt;&amp;" in html.partition("<details>")[2], "the code is below it"
    assert 'alt="mermaid"' in html


def test_a_path_on_this_site_needs_no_pictures_of_others() -> None:
    assert address_in(shown("markdown", IN_FORMATS["markdown"], "/kroki/{code}")).startswith("/kroki/eN")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (IN_FORMATS["markdown"], KROKI),  # pictures of other sites are not shown
        ("```python\nprint()\n```\n", "/kroki/{code}"),
        ("```mermaid\n```\n", "/kroki/{code}"),
        ("```mermaid\n" + "".join(f"A{n}-->B{n * n}\n" for n in range(2_000)) + "```\n", "/kroki/{code}"),
        ("`mermaid`", "/kroki/{code}"),
    ],
)
def test_other_code_is_code(text: str, address: str) -> None:
    html = shown("markdown", text, address)
    assert "<img" not in html
    assert "<code" in html


def test_a_code_of_the_longest_address_is_drawn_and_not_cut() -> None:
    address = address_in(shown("markdown", "```mermaid\n" + "A-->B\n" * 20_000 + "```\n", "/kroki/{code}"))
    assert len(address) <= DRAWN_URL_MAX
    assert zlib.decompress(urlsafe_b64decode(address[7:])).decode() == ("A-->B\n" * 20_000).strip()


@pytest.mark.parametrize(
    "given",
    ["mermaid", "=/x/{code}", "a b=/x/{code}", "mermaid=/x/", "mermaid=http://x.example/{code}", "m=//x/{code}",
     "m=javascript:{code}", "m=/{code}/{code}"],
)  # fmt: skip
def test_what_is_no_renderer_is_refused_with_an_example(given: str) -> None:
    with pytest.raises(ValueError, match="write LANGUAGE=ADDRESS with"):
        checked_renderer(given)


def test_a_renderer_is_read() -> None:
    assert checked_renderer(" Math = /m/{code}?x=1") == ("math", "/m/{code}?x=1")
