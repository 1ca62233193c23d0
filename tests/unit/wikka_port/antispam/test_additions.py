"""What an edit adds: links, words in every spelling, and only what the former text lacks."""

from __future__ import annotations

import pytest

from tests.support.linear_cost import require_linear
from wikka_port.antispam.additions import Addition, Terms, folded_words, host_of, is_of_domain, links_in, stream


@pytest.mark.parametrize(
    "spelling",
    [
        "casino",
        "CASINO",
        "Cäsino",
        "cas\u200bino",
        "с\u0430sin\u043e",  # Cyrillic letters
        "ｃａｓｉｎｏ",
        "𝐜𝐚𝐬𝐢𝐧𝐨",
        "c4s1n0",
        "ca$ino",
        "c-a-s-i-n-o",
        "c a s i n o",
        "c.a.s.i.n.o",
        "casinos",
    ],
)
def test_a_word_is_found_in_every_spelling(spelling: str) -> None:
    assert Terms(["casino"]).count_in(stream(folded_words(f"the {spelling} here"))) == {"casino": 1}


@pytest.mark.parametrize("text", ["occasion", "casinova", "in case, no", "CA SI NO", "сказка", "κ α σ"])
def test_other_words_are_not(text: str) -> None:
    assert not Terms(["casino"]).count_in(stream(folded_words(text)))


def test_words_side_by_side_and_phrases_are_found() -> None:
    found = Terms(["buy", "buy now", "pill"]).count_in(stream(folded_words("Buy pills! Buy   now, buy.")))
    assert found == {"buy": 2, "pill": 1, "buy  now": 1}
    assert not Terms([]).count_in(stream(["a"]))
    assert not Terms(["", "--"]).count_in(stream(["a"]))


def test_links_in_every_markup() -> None:
    text = (
        "[[https://a.example/x Words of it]] [[https://b.example|More]] [here](https://c.example/(x)) "
        '[url=https://d.example]D[/url] <a class="k" href="https://e.example">E</a> https://F.example:8080/y. '
        "[[A page]] mailto:x@y.example [no](/local)"
    )
    assert [(link.host, link.title) for link in links_in(text)] == [
        ("a.example", "Words of it"),
        ("b.example", "More"),
        ("c.example", "here"),
        ("d.example", "D"),
        ("e.example", "E"),
        ("f.example", ""),
    ]


def test_hosts_and_domains() -> None:
    assert host_of("https://www.Pills.example/x") == "pills.example"
    assert host_of("https://[::1") == ""
    assert is_of_domain("shop.pills.example", {"pills.example"})
    assert not is_of_domain("mypills.example", {"pills.example"})


def test_only_what_is_new_counts() -> None:
    old = "One casino, https://a.example and https://b.example\n\nSecond part.\n"
    typo = Addition(old, old.replace("One", "A"))
    assert typo.links == ()
    assert not typo.count(Terms(["casino"]))
    moved = Addition(old, "Second part.\n\nOne casino, https://a.example and https://b.example\n")
    assert moved.links == ()
    assert moved.kept_share == 1.0
    more = Addition(old, old.replace("casino,", "casino, casino https://a.example"))
    assert [link.host for link in more.links] == ["a.example"]
    assert more.count(Terms(["casino"])) == {"casino": 1}
    assert Addition("", "https://wiki.example/Page", ["wiki.example"]).links == ()


def test_code_is_left_out() -> None:
    shown = '%%(html)\n<div style="display:none">[url=https://a.example]\n%%\n```\nhttps://b.example\n```\n##x## `y`'
    addition = Addition("", shown)
    assert addition.links == ()
    assert not addition.has_hidden_text
    assert not addition.has_board_marks
    open_code = Addition("", "%%\nhttps://a.example")
    assert open_code.links == ()


def test_hidden_text_and_disguised_words() -> None:
    assert Addition("", '<div style="display:none">x</div>').has_hidden_text
    assert Addition("", "<p hidden>x</p>").has_hidden_text
    assert not Addition("", "<p>A hidden bay, display: none.</p>").has_hidden_text
    assert Addition("", "b\u0443y v\u0456agra ca\u200bsino").disguised == 3
    usual = "5 μm, Δt, naïve, Œuvre, \u200fשלום, soft\u00adhyphen, Русский text, 東京tower, می\u200cخواهم"
    assert Addition("", usual).disguised == 0


@pytest.mark.parametrize(
    "piece",
    [
        "[[http://",
        "[",
        "[[http://" + "a" * 50,
        "<a ",
        "<a<",
        "[url=",
        "a ",
        "a.",
        "com.",
        "%%",
        "`",
        "##",
        "```\n",
        "<p ",
    ],
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    """A quadratic pattern takes minutes."""

    def work(size: int) -> None:
        addition = Addition("", piece * (size // len(piece)))
        assert addition.links is not None
        assert addition.sites is not None
        assert addition.words is not None
        assert addition.has_hidden_text in (True, False)
        assert addition.words_beside_addresses >= 0

    require_linear(work, 200_000, usual_s=5)
