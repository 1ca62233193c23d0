"""Every construct of the markup: used rightly, nested, and left open."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tests.support.well_nested import check
from wikka_port.markup.document import Document, parse, render
from wikka_port.markup.fragments import Heading


def html(text: str, existing: frozenset[str] = frozenset(), *, autolink: bool = True) -> str:
    return render(parse(text, autolink=autolink), existing=existing).strip()


def flat(text: str) -> str:
    return html(text).replace("\n", "")


@pytest.mark.parametrize(
    ("mark", "start", "end"),
    [
        ("**", "<strong>", "</strong>"),
        ("//", "<em>", "</em>"),
        ("__", "<u>", "</u>"),
        ("##", "<code>", "</code>"),
        ("''", "<mark>", "</mark>"),
        ("++", "<s>", "</s>"),
        ("££", "<ins>", "</ins>"),
        ("&pound;&pound;", "<ins>", "</ins>"),
        ("¥¥", "<del>", "</del>"),
        ("&yen;&yen;", "<del>", "</del>"),
        ("#%", "<kbd>", "</kbd>"),
        ("@@", '<span class="center">', "</span>"),
    ],
)
def test_toggles(mark: str, start: str, end: str) -> None:
    assert html(f"a {mark}b{mark} c") == f"<p>a {start}b{end} c</p>"
    assert html(f"a {mark}b") == f"<p>a {start}b{end}</p>"
    assert html(f"a {mark}b\n\nc") == f"<p>a {start}b{end}</p>\n<p>c</p>"
    assert html(f"~-{mark}a\n~-b").count(start) == 1


def test_toggles_that_cross() -> None:
    assert html("**a //b** c//") == "<p><strong>a <em>b</em></strong><em> c</em></p>"


@pytest.mark.parametrize(("marks", "level"), [("======", 1), ("=====", 2), ("====", 3), ("===", 4), ("==", 5)])
def test_headings(marks: str, level: int) -> None:
    document = parse(f"{marks}A //b//{marks}\ntext")
    assert document.headings == (Heading(level, "A b", "s-a-b", 0),)
    assert document.title == "A b"
    shown = render(document, existing=set())
    assert shown.startswith(f'<h{level} id="s-a-b">A <em>b</em> <a class="anchor" href="#s-a-b"')
    assert shown.endswith(f"</h{level}>\n<p>text</p>\n")


def test_headings_with_the_same_text_have_ids_of_their_own() -> None:
    ids = [heading.id for heading in parse("==a==\n==a-2==\n==a==\n==!==\n==Ā==").headings]
    assert ids == ["s-a", "s-a-2", "s-a-3", "s-section", "s-ā"]


@pytest.mark.parametrize(
    "text",
    ["== open", "a == b", "=====", "==  ==", "a ==  == b", "======= seven =======", "a ======= seven =======",
     "a ==b\n==", "a == %%b==%% c", "a == [[b==c]]", "a == http://x.org/?b==c", '""a ==b== c""', "%%a ==b== c%%",
     "[[a ==b== c]]", "http://x.org/==a==", "||a ==b||c== d||", "||a ==b|=|c== d||"],
)  # fmt: skip
def test_what_is_no_heading(text: str) -> None:
    assert parse(text).headings == ()
    assert "==" in html(text) or "%3D%3D" in html(text)


@pytest.mark.parametrize(("marks", "level"), [("======", 1), ("=====", 2), ("====", 3), ("===", 4), ("==", 5)])
def test_headings_inside_a_line(marks: str, level: int) -> None:
    document = parse(f"before {marks}A //b//{marks} after\nmore")
    assert document.headings == (Heading(level, "A b", "s-a-b", 0),)
    shown = render(document, existing=set())
    assert shown.startswith(f'<p>before </p>\n<h{level} id="s-a-b">A <em>b</em> <a class="anchor"')
    assert shown.endswith(f"</h{level}>\n<p>after<br>\nmore</p>\n")


def bare(text: str) -> str:
    """Without what every heading has besides."""
    return re.sub(r'( id="s-[^"]*")| <a class="anchor".*?</a>', "", flat(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<<===A===\nb<<", '<div class="float-left"><h4>A</h4><p>b</p></div>'),
        ("a ==b==c==d== e", "<p>a </p><h5>b</h5><p>c</p><h5>d</h5><p>e</p>"),
        ("a --- ===b===", "<p>a <br> </p><h4>b</h4>"),
        ("~-a ==b== c\n~-d", "<ul><li>a <h5>b</h5> c</li><li>d</li></ul>"),
        ("~==a==\n~b", '<div class="indent"><h5>a</h5><br>b</div>'),
        ("**a ==b== c** d", "<p><strong>a </strong></p><h5><strong>b</strong></h5><p><strong>c</strong> d</p>"),
        ("**==a==** b", "<p></p><h5><strong>a</strong></h5><p>b</p>"),
        ("~-a ##{{calendar}}##", "<ul><li>a </li></ul>"),
        ("a ==**b== c", "<p>a </p><h5><strong>b</strong></h5><p>c</p>"),
        ("**a ==b** c== d", "<p><strong>a </strong></p><h5><strong>b</strong> c</h5><p>d</p>"),
        ("**a ==[[/b]]==", '<p><strong>a </strong></p><h5><strong><a href="/b">/b</a></strong></h5>'),
        ("**a ==b==\nc", "<p><strong>a </strong></p><h5><strong>b</strong></h5><p>c</p>"),
        ("**a\n==b== c", "<p><strong>a</strong></p><h5>b</h5><p>c</p>"),
        ("<<a ==b<< c== d", '<div class="float-left"><p>a </p><h5>b</h5></div><p>c</p><p>d</p>'),
        ("a == b ---- c == d", "<p>a </p><h5> b ---- c </h5><p>d</p>"),
    ],
)
def test_a_heading_inside_a_line_keeps_what_is_around_it(text: str, shown: str) -> None:
    assert bare(text) == shown
    check(html(text)).text  # noqa: B018 - it raises


def test_a_heading_in_a_cell_stays_there() -> None:
    assert "<td>a <h5>b</h5> c</td><td>d</td>" in bare("||a ==b== c||d||")
    assert "<td><hr></td>" in flat("||----||")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a ---- b", "<p>a </p><hr><p>b</p>"),
        ("--- --- ------ b", "<p><br> <br> </p><hr><p>b</p>"),
        ("**a ---- b** c", "<p><strong>a </strong></p><hr><p><strong>b</strong> c</p>"),
        ("**a\n---- b", "<p><strong>a</strong></p><hr><p>b</p>"),
        ("~-a ---- b\n~-c", "<ul><li>a <hr> b</li><li>c</li></ul>"),
        ('""a ---- b""', "<p>a ---- b</p>"),
        ("[[Foo----Bar]]", '<p><a href="/Foo----Bar/edit" class="missing" rel="nofollow">Foo----Bar</a></p>'),
        ("http://x.org/a----b", '<p><a href="http://x.org/a----b" class="external" rel="nofollow noopener">'
         "http://x.org/a----b</a></p>"),
    ],
)  # fmt: skip
def test_rules_inside_a_line(text: str, shown: str) -> None:
    assert flat(text) == shown
    check(html(text)).text  # noqa: B018 - it raises


def test_a_heading_swallowed_by_a_verbatim_ends_with_its_line() -> None:
    assert [heading.text for heading in parse("==a %%b== c%%\nd").headings] == ["a b== c"]


@pytest.mark.parametrize("end", ["||", "|=|", "|=|  "])
def test_either_delimiter_closes_a_row(end: str) -> None:
    """WikkaWiki's rows of headings end with the delimiter of a heading: it opened an empty cell here."""
    shown = flat(f"|=|a|=|b{end}\n||c||d||")
    assert '<tr><th scope="col">a</th><th scope="col">b</th></tr>' in shown
    assert "<tr><td>c</td><td>d</td></tr>" in shown
    assert "<th" in html("|=|")  # what has nothing to close is a cell


def test_footnotes() -> None:
    document = parse("a[^one **b [[X]]^] c **d[^two //e^] f**\n\ng")
    assert document.links == ("X",)
    shown = render(document, existing={"X"})
    assert shown.startswith(
        '<p>a<sup class="note-ref"><a id="r-1" href="#n-1" aria-label="Footnote 1">1</a></sup> c <strong>d<sup'
    )
    assert " f</strong></p>\n<p>g</p>\n" in shown
    assert '<li id="n-1">one <strong>b <a href="/X">X</a></strong> <a href="#r-1"' in shown
    assert '<li id="n-2">two <em>e</em> <a href="#r-2"' in shown
    check(shown).text  # noqa: B018 - it raises


@pytest.mark.parametrize(
    "text", ["a[^b", "a[^b\n^]", "a[^ ^]", "==a[^b^]==", "[^-^", "(^_^)", "||a[^b||c^]||", "[[^x^]]"]
)
def test_what_is_no_footnote_is_shown(text: str) -> None:
    assert 'class="note-ref"' not in html(text)


@pytest.mark.parametrize(
    "text",
    ["[^a [^b^] c^]", "[^%%x^]%% y", "||a[^b^]||c[^d||e^]||", "~-a[^b ---- c^]\n~-d", "[^<<a<< b^]", "<<a[^b<<c^]",
     "[^{{toc}}^]", "[^a ==b== c^]", "==h==[^a^]", "[^a|!|b^]", "**[^a** b^] c**", '[^""<div>x</div>""^]'],
)  # fmt: skip
def test_footnotes_are_well_nested_among_everything(text: str) -> None:
    shown = html(text)
    assert 'id="n-1"' in shown
    check(shown).text  # noqa: B018 - it raises


def test_rule_and_break() -> None:
    assert flat("a\n----\nb --- c ---- d") == "<p>a</p><hr><p>b <br> c </p><hr><p>d</p>"


def test_lines_and_paragraphs() -> None:
    assert flat("a\nb\r\n\r\n\nc\n") == "<p>a<br>b</p><p>c</p>"
    assert html("") == html("\n \n") == ""


@pytest.mark.parametrize("indent", ["~", "\t", "    "])
def test_lists_and_indents(indent: str) -> None:
    assert flat(f"{indent}- a\n{indent}-b\nc") == "<ul><li>a</li><li>b</li></ul><p>c</p>"
    assert flat(f"{indent}a\n{indent}b") == '<div class="indent">a<br>b</div>'
    assert flat(f"{indent}-a\n{indent * 2}-b\n{indent}-c") == ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>")


@pytest.mark.parametrize(
    ("marker", "tag"),
    [
        ("1)", "<ol>"),
        ("4)", '<ol start="4">'),
        ("a)", '<ol type="a">'),
        ("c)", '<ol type="a" start="3">'),
        ("A)", '<ol type="A">'),
        ("i)", '<ol type="i">'),
        ("I)", '<ol type="I">'),
        ("&", '<ul class="thread">'),
    ],
)
def test_kinds_of_list(marker: str, tag: str) -> None:
    close = tag[1:3]
    assert flat(f"~{marker}x\n~{marker}y") == f"{tag}<li>x</li><li>y</li></{close}>"
    assert flat(f"~{marker}x\n~-y") == f"{tag}<li>x</li></{close}><ul><li>y</li></ul>"


def test_letters_go_on_past_i() -> None:
    assert html("~h) x\n~i) y\n~j) z").count("<ol") == 1


def test_an_empty_line_ends_a_list_and_depth_is_bounded() -> None:
    assert html("~-a\n\n~-b").count("<ul>") == 2
    assert html("~" * 100_000 + "deep").count("<div") == 12
    assert html("    \n\t\n") == ""


def test_floats_hold_blocks() -> None:
    assert flat("<<a\n~-b\n<<\nc") == '<div class="float-left"><p>a</p><ul><li>b</li></ul></div><p>c</p>'
    assert flat(">>a\n\nb") == '<div class="float-right"><p>a</p><p>b</p></div>'
    assert flat("<<a>>b<<c") == '<div class="float-left"><p>a</p><div class="float-right"><p>b</p></div></div><p>c</p>'
    assert flat("~-<<a<<") == '<ul><li><span class="float-left">a</span></li></ul>'
    assert '<br class="clear">' in html("a ::c:: b")


def test_comments() -> None:
    assert html("a /* b\n\nc */  d") == "<p>a d</p>"
    assert html("/* first */\n~-a").startswith("<ul>")
    assert html("a `` b `` c") == "<p>a  c</p>"
    assert html("a /* b") == "<p>a /* b</p>"
    assert html("a `` b") == "<p>a `` b</p>"


def test_literal_and_embedded_html() -> None:
    assert html('""WikiPage **no**""') == "<p>WikiPage **no**</p>"
    assert html('a ""<b>x</b>"" c') == "<p>a <b>x</b> c</p>"
    assert html('a ""<div>x"" c') == "<p>a </p>\n<div>x</div><p>c</p>"
    assert html('a ""b') == "<p>a &quot;&quot;b</p>"
    assert html('""<span class="note warn!">x""') == '<p><span class="user-note">x</span></p>'


def test_code() -> None:
    assert html("%%a <b>\n  c%%") == '<pre class="code" tabindex="0"><code>a &lt;b&gt;\n  c</code></pre>'
    shown = html("%%(python;7;x.py)\ndef f(): pass\n%%")
    assert "<figcaption>x.py</figcaption>" in shown
    assert 'class="language-python"' in shown
    assert 'data-line="7"' in shown
    assert '<span class="k">def</span>' in shown
    assert 'class="language-klingon">&lt;' in html("%%(klingon)<%%")
    assert html("a %% b") == "<p>a %% b</p>"
    assert html("~-a %%b%% c").startswith("<ul>\n<li>a <pre")
    assert "<code>b</code>" in html("==a %%b%%==")


def test_code_over_the_bound_is_plain() -> None:
    line = "x = 1\n"
    assert "<span" in html(f"%%(python)\n{line * 10}%%")
    assert "<span" not in html(f"%%(python)\n{line * 1000}%%")
    assert "<span" not in html(f"%%(python)\n{'x = 1;' * 100}%%")


def test_forced_links() -> None:
    there = frozenset({"Main Page"})
    assert html("[[Main_Page]]", there) == '<p><a href="/Main_Page">Main Page</a></p>'
    assert html("[[Main Page | here]]", there) == '<p><a href="/Main_Page">here</a></p>'
    missing = '<p><a href="/Other/edit" class="missing" rel="nofollow">Other</a></p>'
    assert html("[[Other]]", there) == missing
    assert html("[[a&#124;b&#93;]]", frozenset({"a|b]"})) == '<p><a href="/a%7Cb%5D">a|b]</a></p>'
    assert html("[[Foo [x]]]", frozenset({"Foo [x]"})) == '<p><a href="/Foo_%5Bx%5D">Foo [x]</a></p>'


@pytest.mark.parametrize("text", ["[[]]", "[[ | x]]", "[[a\nb]]", "[[open", "[[" + "a" * 2000 + "]]"])
def test_what_is_no_link_is_shown(text: str) -> None:
    assert "<a" not in html(text)
    assert "[[" in html(text)


def test_the_innermost_brackets_count() -> None:
    assert parse("[[a [[b]]").links == ("b",)


@pytest.mark.parametrize(
    ("text", "href", "label", "css"),
    [
        ("[[http://x.org/a words here]]", "http://x.org/a", "words here", "external"),
        ("[[http://x.org/a | words]]", "http://x.org/a", "words", "external"),
        ("[[mailto:a@b.org|mail]]", "mailto:a@b.org", "mail", "mail"),
        ("[[a@b.org]]", "mailto:a@b.org", "a@b.org", "mail"),
        ("mailto:a@b.org", "mailto:a@b.org", "a@b.org", "mail"),
        ("[[WikiPedia:Two Words]]", "https://en.wikipedia.org/wiki/Two_Words", "WikiPedia:Two Words", "interwiki"),
        ("WikiPedia:Wiki", "https://en.wikipedia.org/wiki/Wiki", "WikiPedia:Wiki", "interwiki"),
        ("https://x.org/a_(b)", "https://x.org/a_(b)", "https://x.org/a_(b)", "external"),
        ("ftp://x.org/", "ftp://x.org/", "ftp://x.org/", "external"),
    ],
)
def test_links_outside(text: str, href: str, label: str, css: str) -> None:
    document = parse(text)
    assert document.links == ()
    shown = render(document, existing=set())
    assert f'<a href="{href}" class="{css}"' in shown
    assert f">{label}</a>" in shown


def test_local_links() -> None:
    assert html("[[#My place|there]]") == '<p><a href="#s-my-place">there</a></p>'
    assert html("[[/Foo/history]]") == '<p><a href="/Foo/history">/Foo/history</a></p>'


@pytest.mark.parametrize("tail", [".", ",", ")", "**", "//", "''", "||", '"', ">"])
def test_what_follows_an_address_is_not_part_of_it(tail: str) -> None:
    assert 'href="http://x.org/a"' in html(f"x http://x.org/a{tail}")


def test_images() -> None:
    assert '<img src="https://x.org/a.png" alt="a.png"' in html("see http://x.org/a.png.")


def test_camel_case() -> None:
    assert parse("WikiPage and AnotherOne's, not xWikiPage, WIKI or Éa").links == ("WikiPage", "AnotherOne")
    assert parse("WikiPage", autolink=False).links == ()
    assert parse("==WikiPage==").links == ("WikiPage",)


def test_references_are_characters_without_meaning() -> None:
    assert html("&copy; &#42;&#42;a &nosuch; &amp; & &lt;b&gt;") == ("<p>© **a &amp;nosuch; &amp; &amp; &lt;b&gt;</p>")


def test_mind_maps() -> None:
    shown = html('<map version="1"><node TEXT="a&amp;b"><node TEXT="c"/></node><node TEXT="d"></map>')
    assert shown == ('<figure class="mindmap"><ul><li>a&amp;b<ul><li>c</li></ul></li><li>d</li></ul></figure>')
    assert html("<map>") == "<p>&lt;map&gt;</p>"


def act(name: str, arguments: Mapping[str, str]) -> str | None:
    return f"<i>{name} {sorted(arguments.items())}</i>" if name in ("image", "list") else None


def acted(text: str) -> str:
    return render(parse(text), existing=set(), action=act).strip()


def test_actions() -> None:
    assert acted("""{{list A="1" b = '2"'}}""") == """<i>list [('a', '1'), ('b', '2"')]</i>"""
    assert acted("x {{image}} y") == "<p>x <i>image []</i> y</p>"
    assert acted("x {{list}} y") == "<p>x </p>\n<i>list []</i><p>y</p>"
    assert acted('a {{nosuch a="<"}} b') == "<p>a </p>\n<p>b</p>"
    assert acted("{{not an action}} {{}} {{open") == "<p>{{not an action}} {{}} {{open</p>"
    assert [call.name for call in parse("{{toc}}{{list}}{{Image}}").actions] == ["list", "image"]


def test_actions_are_bounded() -> None:
    document = parse("{{list}}" * 1000)
    assert len(document.actions) == 50
    assert render(document, existing=set(), action=act).count("<i>list") == 50


def test_an_action_that_is_not_run_is_nothing_but_for_its_author() -> None:
    document = parse("=={{list}}==\n{{nosuch}} a {{color}}" + "{{list}}" * 60)
    assert "nosuch" not in render(document, existing=set())
    told: list[tuple[str, str]] = []
    render(document, existing=set(), note=lambda slot: told.append((slot.name, slot.refused)) or "")  # type: ignore[func-returns-value]
    assert told[:3] == [
        ("list", "it makes a block, which cannot stand in a heading or a footnote"),
        ("nosuch", ""),
        ("color", ""),
    ]
    assert told[-1] == ("list", "a page has 50 actions at most")


def test_the_table_of_contents() -> None:
    text = '{{toc levels="1-2" title="Here"}}\n======A & b======\n=====B=====\n====C====\n======D======\n{{toc}}'
    shown = html(text)
    assert shown.startswith(
        '<nav class="toc" id="toc" aria-label="Here"><p class="toc-title">Here</p>'
        '<ul><li><a href="#s-b">B</a></li></ul><ul><li><a href="#s-d">D</a></li></ul></nav>'
    )
    assert "A &amp; b</a></li>" not in shown  # the page's own title
    assert shown.count('id="toc"') == 1
    assert html("{{toc}}") == ""


THREE = "=====B=====\n====C====\n=====D & e====="
FOLDED = (
    '<details class="toc" id="toc"><summary class="toc-title">Contents</summary><nav aria-label="Contents">'
    '<ul><li><a href="#s-b">B</a><ul><li><a href="#s-c">C</a></li></ul></li>'
    '<li><a href="#s-d-e">D &amp; e</a></li></ul></nav></details>\n'
)


def test_the_contents_stand_by_themselves_before_the_first_heading_from_three_on() -> None:
    assert html(f"a\n{THREE}").startswith(f'<p>a</p>\n{FOLDED}<h2 id="s-b">')
    titled = html(f"======A======\na\n{THREE}")  # the title is none of them
    assert f'<p>a</p>\n{FOLDED}<h2 id="s-b">' in titled
    assert "details" not in html(f"======A======\n{THREE.rpartition(chr(10))[0]}")
    assert html(f"{THREE}\n======A======").count("<li>") == 4


@pytest.mark.parametrize("none", ["{{notoc}}", '{{toc levels="1"}}', "~-a {{notoc}}", "==a {{notoc}}=="])
def test_a_page_has_no_contents_where_it_says_so_or_has_its_own(none: str) -> None:
    shown = html(f"{none}\n{THREE}")
    assert "details" not in shown
    assert "notoc" not in shown


def test_the_contents_stand_in_no_box_list_or_table() -> None:
    for around in ("<<box\n{}\n<<", "~-{}", "||{}||"):
        text = around.format("==a==") + f"\n\n{THREE}"
        shown = html(text)
        check(shown)
        before, found, after = shown.partition('<details class="toc"')
        assert (found != "", 'id="s-b"' in before, 'id="s-b"' in after) == (True, False, True), text
        assert before.count("<div") == before.count("</div")
        assert '<a href="#s-a">a</a>' in after


def test_a_heading_without_a_word_is_in_no_contents() -> None:
    shown = html(f'=={{{{color c="red" text="x"}}}}==\n{THREE}')
    assert shown.count("<li>") == 3


def test_redirects_show_where_they_lead() -> None:
    document = parse('{{redirect target="Foo_bar"}}')
    assert (document.redirect, document.links) == ("Foo bar", ("Foo bar",))
    assert '<span class="redirect"><a href="/Foo_bar">' in render(document, existing={"Foo bar"})


def test_a_document_is_a_value() -> None:
    first, second = parse("**a** [[b]]"), parse("**a** [[b]]")
    assert isinstance(first, Document)
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize("tag", ["sup", "sub", "small"])
def test_halves_of_a_pair_of_html(tag: str) -> None:
    one, other = f'""<{tag}>""', f'""</{tag}>""'
    link = '<a href="/B/edit" class="missing" rel="nofollow">B</a>'
    assert html(f"a{one}[[B]] **c**{other} d") == f"<p>a<{tag}>{link} <strong>c</strong></{tag}> d</p>"
    assert html(f"a **b{one}c** d{other} e") == (f"<p>a <strong>b<{tag}>c</{tag}></strong><{tag}> d</{tag}> e</p>")
    assert html(f"a {one}b\n\nc") == f"<p>a <{tag}>b</{tag}></p>\n<p>c</p>"
    assert html(f"a {other}b{other}") == "<p>a b</p>"
    assert html(f"{one}a{one}b{other}c{other}") == f"<p><{tag}>ab</{tag}>c</p>"
    assert flat(f"||{one}a||b{other}||") == flat("||A||b||").replace("A", f"<{tag}>a</{tag}>")
    assert f"a<{tag}>b</{tag}" in html(f"=====a{one}b{other}=====")
    for broken in (f"~- {one}a\n~- b", f"{one}a\n=====b=====", f"{one}**a{other}b**", f"||{one}a||\nb{other}"):
        check(html(broken))


def test_a_place_in_html_is_one_of_the_page() -> None:
    text = '=====Here=====\n""<a id="Here">a</a><a id="x y" href="#s-x-y">b</a>"" ""<a id="x y"></a>"" [[#x y | there]]'
    page = html(text)
    assert re.findall(r'id="([^"]*)"', page) == ["s-here", "s-here-2", "s-x-y", "s-x-y-2"]
    before = html('""<a id="Here">a</a>""\n=====Here=====\n||""<a id="cell"></a>""||[^""<a id="note"></a>x""^]')
    assert re.findall(r' id="(s-[^"]*)"', before) == ["s-here-2", "s-here", "s-cell", "s-note"], "headings keep theirs"
    assert '<a href="#s-x-y">there</a>' in page
    assert 'id="' not in html('""<b id="x">a</b><p id="toc" name="y">b</p><a name="z">c</a>""')
    assert re.findall(r'id="([^"]*)"', html("""\"\"<a id="toc">a</a><a id='&quot; onclick=&quot;x'>b</a>\"\"""")) == [
        "s-toc", "s-onclick-x",
    ]  # fmt: skip
    assert re.findall(r' id="([^"]*)"', html('""<a title="&#2;x" id="&#2;y">id="&#2;z"</a>""')) == ["s-y"]
