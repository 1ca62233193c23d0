"""Pictures and files in pages: rights, calls of the store, previews, included pages, pictures from elsewhere."""

from __future__ import annotations

import re

import pytest

from tests.support.exported_wiki import add_file, anybody
from tests.support.wiki_client import WikiClient
from wikka_port.config import FileConfig
from wikka_port.feeds import iso_time
from wikka_port.files.picture_sources import PictureSources, checked_host
from wikka_port.moving.mover import By
from wikka_port.rights.rules import PageRights, Privilege

PNG = {"media_type": "image/png", "width": 640, "height": 480}


def made(**config: object) -> WikiClient:
    web = WikiClient(**config)
    for name in ("Page", "Page/Below", "Files", "Secret"):
        web.wiki.save(name, "text", author="Ada", base=0)
        web.wiki.attach(name, f"Of {name.rpartition('/')[2].lower()}.png", **PNG)
    web.wiki.attach("Page", "Paper.pdf", media_type="application/pdf", size_bytes=1_200_000)
    return web


def shown(web: WikiClient, name: str, typed: str, **given: object) -> str:
    web.wiki.save(name, typed, author="Eve", base=web.wiki.page(name).number, **given)
    web.wiki.calls.clear()
    answer = web.get("/" + name.replace("/", "~2F"))
    assert answer.status_code == 200
    return answer.text.partition('<article class="content">')[2].partition("</article>")[0]


def test_a_view_of_a_page_with_its_own_pictures_costs_no_further_call() -> None:
    web = made()
    text = shown(web, "Page", '{{image src="of_page.png"}} {{files download="Paper.pdf"}} {{gallery}}')
    assert text.count('src="/Page/files/Of%20page.png?v=1"') == 2
    assert web.wiki.calls == ["page"]


def test_the_list_of_files_says_when_and_by_whom_each_was_changed() -> None:
    web = made()
    page = {"base": 0, "author": "Ada"}
    web.wiki.save("Ships", "text", **page)
    for name, by in (("a.txt", By("Ada", "account", "")), ("b.txt", By("<Eve>", "", "")), ("c.txt", By("Ada", "", ""))):
        token = add_file(web.wiki.files, "Ships", name, b"text", by)
    web.wiki.files.remove("Ships", "c.txt", token, By("Ada", "account", ""), allow=anybody)
    versions = web.wiki.files.committing.newest_versions("Ships")
    for text in (shown(web, "Ships", "{{files}}"), shown(web, "Page", '{{files page="Ships"}}')):
        rows = re.findall(r"<tr><td>(.*?)</tr>", text)
        assert len(rows) == 2
        for row, name, by in zip(rows, ("a.txt", "b.txt"), ("Ada", "&lt;Eve&gt;"), strict=True):
            assert f'datetime="{iso_time(versions[name].time_ms)}"' in row
            assert f'<span class="author">{by}</span>' in row
            assert ("(no account)" in row) == (name == "b.txt")
    assert web.wiki.files.committing.newest_versions("Nowhere") == {}


def test_files_of_the_page_above_and_the_shared_page_cost_one_call() -> None:
    web = made()
    text = shown(web, "Page/Below", "[[Of page.png]] [[Of files.png]] [[Of below.png]] [[No.png]]")
    for page, name in (("Page", "page"), ("Files", "files"), ("Page~2FBelow", "below")):
        assert re.search(f'src="/{page}/files/Of%20{name}.png\\?v=1" [^>]*width="640" height="480"', text)
    assert '<a href="/No.png/edit" class="missing"' in text
    assert sorted(web.wiki.calls) == ["existing", "files_of", "page"]


def test_a_page_of_the_name_does_not_hide_the_file() -> None:
    web = made()
    web.wiki.save("Of page.png", "a page", author="Ada", base=0)
    assert "<img " in shown(web, "Page", "[[Of page.png]]")
    assert '<a href="/Of_page.png">' in shown(web, "Files", "[[Of page.png]]")


def test_rights_of_the_other_page_decide_and_an_unreadable_file_is_as_a_missing_one() -> None:
    web = made()
    web.wiki.rights.change("Secret", PageRights("", {}, b""), "", {Privilege.READ: "+", Privilege.WRITE: "+"})
    for typed in ("[[file:Secret/{}]]", '{{{{image src="{}" page="Secret"}}}}'):
        hidden = shown(web, "Page", typed.format("Of secret.png"))
        assert "<img" not in hidden
        assert hidden.replace("Of secret.png", "No secret.png") == shown(web, "Page", typed.format("No secret.png"))
    rita = web.signed_in("Rita")
    assert 'src="/Secret/files/Of%20secret.png?v=1"' in shown(rita, "Page", "[[file:Secret/of SECRET.png]]")
    assert "a page that you may not read" in shown(web, "Page", '{{gallery page="Secret"}}')
    assert "a page that you may not read" in shown(web, "Page", '{{files page="Secret"}}')


def test_an_included_page_shows_its_own_files() -> None:
    web = made()
    web.wiki.save("Page", "[[Of page.png]] {{gallery}}", author="Ada", base=1)
    text = shown(web, "Files", '{{include page="Page"}} [[Of page.png]]')
    assert text.count('src="/Page/files/Of%20page.png?v=1"') == 2
    assert '<a href="/Of_page.png/edit"' in text


def test_a_preview_shows_files_of_a_page_that_is_there() -> None:
    web = made()
    form = web.form("/Page/edit")
    answer = web.post("/Page/edit", {**form, "body": "[[of page.png]] {{gallery}}", "preview": "1"})
    assert answer.text.count('src="/Page/files/Of%20page.png?v=1"') == 2
    assert answer.text.count('href="/Page/files/Of%20page.png?v=1"') == 1
    assert "<img" not in web.post("/New/edit", {**web.form("/New/edit"), "body": "[[x.png]]", "preview": "1"}).text


def test_the_table_of_files() -> None:
    text = shown(made(), "Page", "{{attachments}}")
    assert '<td><a href="/Page/files/Paper.pdf?v=1" class="file">Paper.pdf</a></td><td>Document, PDF</td>' in text
    assert "<td>Picture, PNG, 640 × 480</td><td>3.4 kB</td>" in text
    assert '<a href="/Page/files" rel="nofollow">All files of Page</a>' in text
    assert "This page has no files." in shown(made(), "Page", '{{files page="Nowhere"}}')


def test_a_gallery_has_a_link_with_words_for_each_picture() -> None:
    web = made()
    web.wiki.attach("Page", "second.png", alt="decorative", **PNG)
    text = shown(web, "Page", "{{gallery}}")
    assert text.count("<li><figure><a ") == 2
    assert "Paper.pdf" not in text
    assert 'alt=""' not in text, "a link around it would have no words"
    assert "This page has no pictures." in shown(made(), "Page", '{{gallery page="Nowhere"}}')


LISTED = PictureSources("listed", ("good.example", "*.photos.example"))


@pytest.mark.parametrize(
    ("sources", "policy", "hosts"),
    [
        (PictureSources("none", ("good.example",)), "img-src 'self' data:;", ()),
        (LISTED, "img-src 'self' data: https://good.example https://*.photos.example;",
         ("good.example", "a.photos.example")),
        (PictureSources("all"), "img-src 'self' https: data:;", ("good.example", "a.photos.example", "bad.example")),
    ],
)  # fmt: skip
def test_pictures_from_elsewhere(sources: PictureSources, policy: str, hosts: tuple[str, ...]) -> None:
    web = made(files=FileConfig(foreign_pictures=sources.kind, picture_hosts=sources.hosts))
    for host in ("good.example", "a.photos.example", "bad.example"):
        url = f"https://{host}/a.png"
        for text in (
            shown(web, "Page", url), shown(web, "Page", f'{{{{image url="{url}" alt="it"}}}}'),
            shown(web, "Page", f"![it]({url})", markup="markdown"),
            shown(web, "Page", f'""<img src="{url}" alt="it">""', markup="wikka"),
        ):  # fmt: skip
            assert (f'<img src="{url}"' in text) == (host in hosts)
            assert (f'<a href="{url}"' in text and ">Picture: " in text) == (host not in hosts)
    assert policy in web.get("/Page").headers["Content-Security-Policy"]
    assert policy in web.get("/-/nothing").headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "host", ["", "https://a", "a b", "a;script-src *", "*", "*.", "a..b", "-a", "a.example/", "'self'"]
)
def test_a_host_of_the_list_cannot_change_the_policy(host: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        checked_host(host)
    assert checked_host(" *.Photos.Example:8443 ") == "*.photos.example:8443"


def test_names_of_files_are_no_wanted_pages() -> None:
    web = made()
    shown(web, "Page", "[[Of page.png]] [[No.pdf]] [[Node.js]] [[Other]]")
    assert {name for name, _ in web.wiki.wanted()} == {"Node.js", "Other"}
    listed = shown(web, "Files", '{{checklinks page="Page"}}')
    assert "Node.js" in listed
    assert "No.pdf" not in listed
