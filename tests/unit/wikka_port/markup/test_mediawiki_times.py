"""Times and dates of MediaWiki's functions: what PHP and MediaWiki make of them, and that hostile ones are bounded."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.markup.mediawiki import Dialect, convert
from wikka_port.markup.mediawiki_dates import DATE_CHARS_MAX, read_time
from wikka_port.markup.mediawiki_months import TIME_NAMES, names_in
from wikka_port.markup.mediawiki_times import FORMAT_CHARS_MAX, reformatted, variable_of, written_time
from wikka_port.markup.mediawiki_values import ExpressionError
from wikka_port.markup.mediawiki_words import LANGUAGES

NOW = datetime(2010, 5, 3, 10, 30, 15, tzinfo=UTC)  # a Monday
TIME_MS = 1_272_882_615_000


def shown(wikitext: str, language: str = "en", time_ms: int | None = TIME_MS) -> str:
    dialect = Dialect.of({"": 0, "Template": 10}, language=language, templates={"Template:Y": "{{#time:Y|{{{1|}}}}}"})
    text = convert(wikitext, namespaces=dialect, title="Riga", time_ms=time_ms).text
    return text.partition("|!|(c:folded)||")[0].rstrip("\n")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "2010-05-03 10:30:15"),
        ("now", "2010-05-03 10:30:15"),
        ("2009", "2009-05-03 00:00:00"),  # as in MediaWiki, today in that year
        ("1200", "1200-05-03 00:00:00"),
        ("12:30 2009", "2009-05-03 12:30:00"),
        ("2009-02-03", "2009-02-03 00:00:00"),
        ("2009-2-3", "2009-02-03 00:00:00"),
        ("2009-02-30", "2009-03-02 00:00:00"),
        ("2009/02/03", "2009-02-03 00:00:00"),
        ("2009-02", "2009-02-01 00:00:00"),
        ("5/3/2009", "2009-05-03 00:00:00"),
        ("5/3/09", "2009-05-03 00:00:00"),
        ("5/3/75", "1975-05-03 00:00:00"),
        ("3.5.2009", "2009-05-03 00:00:00"),
        ("3-5-2009", "2009-05-03 00:00:00"),
        ("3 May 2009", "2009-05-03 00:00:00"),
        ("3rd may 2009", "2009-05-03 00:00:00"),
        ("May 3, 2009", "2009-05-03 00:00:00"),
        ("2009 May 3", "2009-05-03 00:00:00"),
        ("3 Sept", "2010-09-03 00:00:00"),
        ("June 2009", "2009-06-01 00:00:00"),
        ("June", "2010-06-03 00:00:00"),
        ("20090503", "2009-05-03 00:00:00"),
        ("20090503101112", "2009-05-03 10:11:12"),
        ("2009-05-03T10:11:12Z", "2009-05-03 10:11:12"),
        ("2009-05-03 10:11 +02:00", "2009-05-03 08:11:00"),
        ("2009-05-03 10:11 UTC", "2009-05-03 10:11:00"),
        ("3 May 2009 10:11 pm", "2009-05-03 22:11:00"),
        ("3 May 2009 12 am", "2009-05-03 00:00:00"),
        ("24:00", "2010-05-04 00:00:00"),
        ("@86400", "1970-01-02 00:00:00"),
        ("@-1", "1969-12-31 23:59:59"),
        ("+1 day", "2010-05-04 10:30:15"),
        ("-2 weeks", "2010-04-19 10:30:15"),
        ("- 90 minutes", "2010-05-03 09:00:15"),
        ("2 weeks ago", "2010-04-19 10:30:15"),
        ("1 month 2 days ago", "2010-04-01 10:30:15"),
        ("31 jan 2010 +1 month", "2010-03-03 00:00:00"),
        ("next month", "2010-06-03 10:30:15"),
        ("last year", "2009-05-03 10:30:15"),
        ("monday", "2010-05-03 00:00:00"),
        ("this monday", "2010-05-03 00:00:00"),
        ("next monday", "2010-05-10 00:00:00"),
        ("last monday", "2010-04-26 00:00:00"),
        ("friday", "2010-05-07 00:00:00"),
        ("last friday", "2010-04-30 00:00:00"),
        ("Tue, 03 May 2009", "2009-05-05 00:00:00"),
        ("today", "2010-05-03 00:00:00"),
        ("tomorrow", "2010-05-04 00:00:00"),
        ("yesterday noon", "2010-05-02 12:00:00"),
        ("noon yesterday", "2010-05-02 00:00:00"),  # as in PHP
        ("first day of next month", "2010-06-01 10:30:15"),
        ("last day of february 2012", "2012-02-29 00:00:00"),
        ("2009W05", "2009-01-26 00:00:00"),
        ("2009-W05-3", "2009-01-28 00:00:00"),
    ],
)
def test_dates_are_read_as_php_reads_them(text: str, wanted: str) -> None:
    found = read_time(text, NOW)
    assert found is not None
    assert f"{found:%Y-%m-%d %H:%M:%S}" == wanted


@pytest.mark.parametrize(
    "text",
    ["garbage", "2009-13-01", "1", "3 May 2009 4 May 2009", "10:30 11:30", "25:00", "0000-00-00", "12/31/9999 +1 day",
     "@999999999999", "2009-W60", "\u0663 May 2009", "x" * (DATE_CHARS_MAX + 1), "9999-12-31 +9999999 years"],
)  # fmt: skip
def test_what_is_no_date_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError):
        read_time(text, NOW)


@pytest.mark.parametrize(
    "text", ["2009-05-03 EST", "2009-05-03 Europe/Berlin", "first monday of may 2010", "3 weekdays"]
)
def test_dates_that_php_reads_and_we_do_not_are_left_undecided(text: str) -> None:
    assert read_time(text, NOW) is None


@given(st.text(alphabet="0123456789 -+:./@,TZapmdyfirstof\xa0é", max_size=30))
def test_any_date_is_read_or_refused(text: str) -> None:
    try:
        found = read_time(text, NOW)
    except ExpressionError:
        return
    assert found is None or 1 <= found.year <= 9999


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("d D j l N w z", "03 Mon 3 Monday 1 1 122"),
        ("W F m M n t", "18 May 05 May 5 31"),
        ("L o Y y", "0 2010 2010 10"),
        ("a A g G h H i s U", "am AM 10 10 10 10 30 15 1272882615"),
        ("c", "2010-05-03T10:30:15+00:00"),
        ("r", "Mon, 03 May 2010 10:30:15 +0000"),
        ("e I O P T Z", "UTC 0 +0000 +00:00 UTC 0"),
        ("xg xx xnY xrY xNY xNm", "May x 2010 MMX 2010 05"),
        ('"Year" Y \\Y "', 'Year 2010 Y "'),
        ("Ymd;é", "20100503;é"),
    ],
)
def test_formats(form: str, wanted: str) -> None:
    assert written_time(NOW, form, "en") == wanted
    assert written_time(NOW, form, "") == wanted


def test_formats_in_other_languages() -> None:
    assert written_time(NOW, "j F Y; j xg; M; l; D", "pl") == "3 maj 2010; 3 maja; maj; poniedziałek; Pn"
    assert written_time(NOW, "j. F, l", "de-at") == "3. Mai, Montag"
    assert written_time(NOW, "F", "ltg") is None  # names that are not known
    assert written_time(NOW, "Y", "ltg") == "2010"
    assert written_time(NOW, "Y", "fa") is None  # digits of its own
    assert written_time(NOW, "xnY", "fa") == "2010"
    for form in ("xjY", "xmj", "xiF", "xkY", "xoY", "xtY", "xhY"):
        assert written_time(NOW, form, "en") is None
    with pytest.raises(ExpressionError):
        written_time(NOW, "Y" * (FORMAT_CHARS_MAX + 1), "en")


def test_each_language_has_all_names() -> None:
    for language in (*LANGUAGES, "en"):
        counts = [len(names_in(language, kind)) for kind in ("month", "of", "short", "day", "weekday")]
        assert counts == [12, 12, 12, 7, 7], language
    assert set(TIME_NAMES) == LANGUAGES


def test_variables_of_the_time() -> None:
    assert (
        shown(
            "{{CURRENTYEAR}} {{CURRENTMONTH}} {{CURRENTMONTHNAME}} {{CURRENTDAY}} {{CURRENTDAY2}} {{CURRENTDOW}} "
            "{{CURRENTDAYNAME}} {{CURRENTWEEK}} {{CURRENTTIME}} {{LOCALHOUR}} {{CURRENTTIMESTAMP}}"
        )
        == "2010 05 May 3 03 1 Monday 18 10:30 10 20100503103015"
    )
    assert shown("{{REVISIONYEAR}} {{REVISIONMONTH1}} {{REVISIONDAY2}} {{REVISIONTIMESTAMP}}") == (
        "2010 5 03 20100503103015"
    )
    assert shown("{{JETZIGES_JAHR}} {{JETZIGER_WOCHENTAG}} {{ТЕКУЩИЙ_ГОД}}", "de").startswith("2010 Montag [")
    assert variable_of("REVISIONHOUR", NOW, "en") is None
    assert variable_of("CURRENTVERSION", NOW, "en") is None
    assert variable_of("CURRENTWEEK", NOW.replace(month=1, day=20), "en") == "3"
    assert shown("{{CONTENTLANGUAGE}}", "de") == "de"


def test_now_is_the_time_of_the_revision() -> None:
    assert shown("{{#time:Y-m-d H:i}} {{#timel:H}} {{y}} {{y|1999-01-01}}") == "2010-05-03 10:30 10 2010 1999"
    assert shown("{{#time:j F Y|{{CURRENTYEAR}}-01-01 +1 year}}") == "1 January 2011"
    assert shown("{{#ifexpr:{{CURRENTYEAR}} > 2000|new|old}} {{#switch:{{CURRENTDAYNAME}}|Monday=yes|no}}") == "new yes"
    assert shown("{{#zeit:Y}} {{#time:F|2009-03-01|pl}} {{#tiempo:Y}}", "es").endswith("marzec 2010")
    assert shown("x {{#time:Y}}", time_ms=None) == 'x [#time"":""Y]'
    assert shown("x {{CURRENTYEAR}}", time_ms=None) == "x [CURRENTYEAR]"
    assert shown("{{CURRENTYEAR}}", time_ms=1) == "1970"


def test_errors_of_times_are_errors() -> None:
    assert shown("{{#iferror:{{#time:Y|garbage}}|wrong|right}} {{#iferror:{{#time:Y|2009}}|wrong|right}}") == (
        "wrong right"
    )
    assert shown("x {{#time:Y|garbage}}") == "x garbage"  # the last words of a call that nobody evaluates


def test_what_a_format_makes_is_text() -> None:
    assert "Riga" not in shown('{{#time:"{{PAGENAM"E"}}"}}')
    assert shown('{{#time:"x{{!}}y"}}').replace('""', "") == "x|y"


@pytest.mark.parametrize(
    ("text", "order", "wanted"),
    [
        ("2009-12-25", "dmy", "25 December 2009"),
        ("Dec 25, 2009", "dmy", "25 December 2009"),
        ("25 december 2009", "mdy", "December 25, 2009"),
        ("25 December 2009", "ymd", "2009 December 25"),
        ("2009 December 5", "ISO 8601", "2009-12-05"),
        ("December 25", "dmy", "25 December"),
        ("25 December", "mdy", "December 25"),
        ("25 December", "ymd", "25 December"),
        ("2009-12-25", "", "2009-12-25"),
        ("2009-13-25", "dmy", "2009-13-25"),
        ("25 Foo 2009", "dmy", "25 Foo 2009"),
        ("x" * 1_000, "dmy", "x" * 1_000),
    ],
)
def test_dates_in_another_order(text: str, order: str, wanted: str) -> None:
    assert reformatted(text, order, "en") == wanted
    assert shown(f"{{{{#dateformat:{text}|{order}}}}}") == wanted


def test_dates_in_another_order_are_those_of_the_language() -> None:
    assert reformatted("2009-12-25", "dmy", "pl") == "25 grudzień 2009"
    assert reformatted("2009-12-25", "dmy", "ltg") is None


def test_hostile_dates_and_formats_are_bounded() -> None:
    began = time.process_time()
    for unit in ("1 ", "+", "+1 day ", "may ", "next ", "a/", "1-", "20100101", "first ", "@"):
        for _ in range(20):
            try:
                read_time(unit * (DATE_CHARS_MAX // len(unit)), NOW)
            except ExpressionError:
                continue
    for unit in ("x", '"', "\\", "xr", "xN", '"x', "c"):
        written_time(NOW, unit * (FORMAT_CHARS_MAX // len(unit)), "en")
    for language in range(1_000):
        names_in(f"q{language}", "month")
    for text in ("a" * 60, "1 " + "é" * 58, "_" * 60):
        reformatted(text, "dmy", "en")
    assert time.process_time() - began < 5
