"""Statements out of lines, words out of statements."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.errors import IllegalArgument
from columnar.limits import SHELL_STATEMENT_CHARACTERS
from columnar.shell.lines import Statement, Statements, before_cursor, quoted, statements_of, words_of


def cut(text: str) -> list[tuple[int, tuple[str, ...]]]:
    found, reader = statements_of(text)
    assert not reader.is_open, reader.lacking
    return [(one.line, one.words) for one in found]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("get pages HomePage", ("get", "pages", "HomePage")),
        ("  get\tpages  ", ("get", "pages")),
        ("put t r text:body='Hello; # you'", ("put", "t", "r", "text:body=Hello; # you")),
        ("""get t 'it'"'"'s'""", ("get", "t", "it's")),
        (r'get t "a \"b\" \\ \x00"', ("get", "t", r'a "b" \ \x00')),
        (r"get t \x00\ \;\'", ("get", "t", r"\x00 ;'")),
        (r"get t '\x00\'", ("get", "t", r"\x00" + "\\")),
        ("get t ''", ("get", "t", "")),
        ("get t a#b", ("get", "t", "a#b")),
        (r"put t r f:q=a\ #1", ("put", "t", "r", "f:q=a #1")),
        (r"put t r f:q=a\;#1 # said", ("put", "t", "r", "f:q=a;#1")),
        ("put t r f:q=a\\ ", ("put", "t", "r", "f:q=a ")),
        ("put t r f:q=a\\\t \t", ("put", "t", "r", "f:q=a\t")),
        (r"put t r f:q=a\\ # said", ("put", "t", "r", "f:q=a\\")),
        ("put t r f:q=a\\\n#1", ("put", "t", "r", "f:q=a#1")),
        ("put t r f:q=a\u00a0", ("put", "t", "r", "f:q=a\u00a0")),
        ("\u00a0", ("\u00a0",)),
    ],
)
def test_words(typed: str, words: tuple[str, ...]) -> None:
    assert cut(typed) == [(1, words)]


def test_statements_comments_and_line_numbers() -> None:
    script = (
        "# a comment; not a statement\n\nget a; get b # and more\n  put t r f:q='two\nlines' ;get c\nget \\\n  d;;\n"
    )
    assert cut(script) == [
        (3, ("get", "a")),
        (3, ("get", "b")),
        (4, ("put", "t", "r", "f:q=two\nlines")),
        (5, ("get", "c")),
        (6, ("get", "d")),
    ]


def test_a_semicolon_within_quotes_separates_nothing() -> None:
    assert cut("""get 'a;b' "c;d" e\\;f;g""") == [(1, ("get", "a;b", "c;d", "e;f")), (1, ("g",))]


def test_hbases_words_have_rubys_quotes_and_go_on_in_brackets() -> None:
    found, reader = statements_of(
        "put 't','r','f:q','it\\'s; so'; list\ncreate 't',\n  {NAME => 'f', # its family\n   VERSIONS => 3}; x"
    )
    assert not reader.is_open
    assert [(one.line, one.is_hbase) for one in found] == [(1, True), (1, False), (2, True), (4, False)]
    assert found[0].text == "put 't','r','f:q','it\\'s; so'"
    assert found[2].text.split() == ["create", "'t',", "{NAME", "=>", "'f',", "VERSIONS", "=>", "3}"]


@pytest.mark.parametrize(
    ("typed", "is_hbase"),
    [
        ("scan 'pages'", False),
        ("scan 'pages' , LIMIT => 5", True),
        ("get 'a' 'b', c", False),
        ("put t r f:q={a,b", False),
        ("put t r f:q='a,b'", False),
    ],
)
def test_whose_words_they_are(typed: str, is_hbase: bool) -> None:
    (found,), reader = statements_of(typed)
    assert (found.is_hbase, reader.is_open) == (is_hbase, False)


def test_what_is_lacking_is_said() -> None:
    for text, lacking in (
        ("get a\nget 'b\nc", "the ' of line 2 is not closed"),
        ("\nscan 't', {LIMIT => 5", "a bracket of the statement that begins in line 2 is not closed"),
        ("get a \\", "the statement that begins in line 1 goes on"),
        ("create 't',", "the statement that begins in line 1 goes on"),
    ):
        _, reader = statements_of(text)
        assert reader.is_open
        assert reader.lacking == lacking


def test_a_statement_has_a_bound() -> None:
    reader = Statements()
    reader.feed("put t r f:q='")
    with pytest.raises(IllegalArgument, match="the ' of line 1 is not closed"):
        reader.feed("x" * SHELL_STATEMENT_CHARACTERS)


@given(st.lists(st.lists(st.text(), min_size=1), min_size=1), st.sampled_from([";", "\n", " ; ", "\n\n"]))
def test_quoted_words_come_back(statements: list[list[str]], separator: str) -> None:
    text = separator.join(" ".join(map(quoted, words)) for words in statements)
    assert [words for _, words in cut(text)] == [tuple(words) for words in statements]


@given(st.text(alphabet="ab '\"\\;#,{}\n=>"))
def test_any_text_is_cut_alike_in_pieces(text: str) -> None:
    """Nothing raises, and a statement that is whole stays the same whatever follows its line."""
    found, _ = statements_of(text)
    longer, _ = statements_of(text + "\nget x")
    assert longer[: len(found)] == found
    assert all(isinstance(one, Statement) and one.text.lstrip(" \t\n") == one.text and one.words for one in found)


CHARACTERS = st.one_of(
    st.sampled_from(" \t\n'\";#\\"),
    st.sampled_from(" ;#\\,{}=>ax0\u00a0\r"),
    st.characters(exclude_categories=["Cs"]),
)
PIECES = st.lists(st.text(CHARACTERS, max_size=4), min_size=1, max_size=4)  # of one word, each typed in its own way
JOINED = "\\\n"  # a line's end within a statement


def in_double_quotes(piece: str, draw: st.DrawFn) -> str:
    typed = ""
    for character, following in zip(piece, (piece + '"')[1:], strict=True):
        is_plain = character not in '"\\' or (character == "\\" and following not in '"\\' and draw(st.booleans()))
        typed += character if is_plain else "\\" + character
    return f'"{typed}"'


def bare(piece: str, draw: st.DrawFn, *, begins_word: bool) -> str:
    typed = ""
    for place, (character, following) in enumerate(zip(piece, (piece + " ")[1:], strict=True)):
        if character == "#":
            is_plain = (place > 0 or not begins_word) and draw(st.booleans())
        elif character == "\\":
            is_plain = following not in " \t'\";#\\" and draw(st.booleans())
        else:
            is_plain = character not in " \t'\";"
        typed += character if is_plain else "\\" + character
    return typed


def in_some_way(piece: str, draw: st.DrawFn, *, begins_word: bool) -> str:
    ways = ['"'] if "'" in piece else ['"', "'"]
    # A line's end has no escape, and a comma behind a quoted word makes the statement HBase's.
    if piece and "\n" not in piece and ("," not in piece or piece[0].isalnum()):
        ways += ["", ""]
    way = draw(st.sampled_from(ways))
    if way == "'":
        return f"'{piece}'"
    return in_double_quotes(piece, draw) if way else bare(piece, draw, begins_word=begins_word)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[str, list[tuple[str, ...]]]:
    """A script, and the words of its statements."""
    text, meant = "", []
    for words in draw(st.lists(st.lists(PIECES, min_size=1, max_size=4), min_size=1, max_size=3)):
        text += draw(st.sampled_from(["", " ", "\t ", JOINED]))
        for number, pieces in enumerate(words):
            text += draw(st.sampled_from([" ", "\t", "  ", f" {JOINED}", f"{JOINED} "])) if number else ""
            for place, piece in enumerate(pieces):
                text += draw(st.sampled_from(["", "", JOINED])) if place else ""
                text += in_some_way(piece, draw, begins_word=place == 0)
        text += draw(st.sampled_from([";", "\n", " ; ", " \t\n", " # it's; \"so\\\n", "\t#\n\n", ";#\n"]))
        meant.append(tuple("".join(pieces) for pieces in words))
    return text, meant


@settings(max_examples=300)
@given(scripts())
def test_words_come_back_in_whichever_way_they_are_typed(script: tuple[str, list[tuple[str, ...]]]) -> None:
    text, meant = script
    assert [words for _, words in cut(text)] == meant


@pytest.mark.parametrize(
    ("text", "words", "last", "quote"),
    [
        ("", (), "", ""),
        ("ge", (), "ge", ""),
        ("get ", ("get",), "", ""),
        ("get pa", ("get",), "pa", ""),
        ("get a; scan 'pa", ("scan",), "pa", "'"),
        ('get a\nscan pages --filter "Pre', ("scan", "pages", "--filter"), "Pre", '"'),
        ("scan pages --filter 'a\nPre", ("scan", "pages", "--filter"), "a\nPre", "'"),
        ("get \\\n pages te", ("get", "pages"), "te", ""),
        ("get a\\ b", ("get",), "a b", ""),
        ("get a\\ ", ("get",), "a ", ""),
        ("get a\\\\ ", ("get", "a\\"), "", ""),
    ],
)
def test_what_stands_before_the_cursor(text: str, words: tuple[str, ...], last: str, quote: str) -> None:
    found = before_cursor(text)
    assert (found.words, found.last, found.quote) == (words, last, quote)
    assert words_of(text[found.begin :]) == ((last,) if last or quote else ())
