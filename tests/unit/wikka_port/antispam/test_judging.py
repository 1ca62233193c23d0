"""The judgement on edits and comments (``wikka_port.antispam.judging``): its rules, one by one, and the corpus."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.proofs.wiki_spam import BAD_LEAST, BAD_NAMES_LEAST, GOOD_MOST, judged, named_accounts, share
from tests.support.made_edits import made_edits
from wikka_port.antispam.additions import run_together
from wikka_port.antispam.advertising import PITCHES, TOPICS
from wikka_port.antispam.judging import (
    REASONS,
    TRUSTED_AGE_S,
    TRUSTED_EDITS,
    Author,
    FormTrace,
    Reason,
    Submission,
    judge,
)
from wikka_port.antispam.policy import BadPolicy, Policy, changed_policy, pack_policy, policy_in

SEED = int(os.environ.get("COLUMNAR_SEED", "20261129"))
VISITOR = Author()
PROSE = "The harbour was rebuilt after the fire, as the minutes of the council show. " * 20


def page(
    new: str, old: str = "", *, author: Author = VISITOR, form: FormTrace | None = None, **more: object
) -> Submission:
    return Submission("page", old, new, author, form=form, **more)  # type: ignore[arg-type]


def codes(submission: Submission, policy: Policy | None = None) -> tuple[str, ...]:
    verdict = judge(submission, policy or Policy())
    return (verdict.action, *(reason.code for reason in verdict.reasons))


def links(count: int) -> str:
    return "\n".join(
        f"Report number {n} on the harbour and its tides, with a table: https://archive{n}.example/{n}"
        for n in range(count)
    )


def test_the_corpus() -> None:
    print(f"COLUMNAR_SEED={SEED}")
    tallies, _wrong = judged(made_edits(SEED))
    good, goods = share(tallies, good=True)
    bad, bads = share(tallies, good=False)
    assert goods == bads == 250
    assert good / goods <= GOOD_MOST
    assert bad / bads >= BAD_LEAST


def test_the_names_of_accounts() -> None:
    tallies, wrong = judged(named_accounts())
    refused, good = share(tallies, good=True)
    assert (refused, [one.submission.name for one, _ in wrong if one.is_good]) == (0, [])
    assert good >= 200
    bad, bads = share(tallies, good=False)
    assert bads >= 100
    assert bad >= BAD_NAMES_LEAST * bads


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("A text.", ""),
        ("", "A short text."),
        (PROSE, ""),
        (f"{PROSE} https://source.example", PROSE),
        ("Thanks, great article!", ""),
        ("We met at the casino.", ""),
    ],
)
def test_an_ordinary_edit_is_accepted_by_default_however_fast_it_came(new: str, old: str) -> None:
    is_linked = "https:" in new
    assert codes(page(new, old, form=FormTrace(seconds=3 if is_linked else 0))) == ("accept",)
    assert codes(page(new, old)) == ("accept",), "a program without a form"


def test_established_accounts_administrators_and_their_programs_pass() -> None:
    spam = page("Buy cheap viagra online, order now! https://pills.example " + links(40))
    assert codes(spam)[0] == "review"
    member = Author(has_account=True, age_s=TRUSTED_AGE_S, edits=TRUSTED_EDITS)
    assert codes(replace(spam, author=member)) == ("accept",)
    assert codes(replace(spam, author=replace(member, edits=TRUSTED_EDITS - 1)))[0] == "review"
    assert codes(replace(spam, author=replace(member, age_s=TRUSTED_AGE_S - 1)))[0] == "review"
    assert codes(replace(spam, author=Author(administers=True))) == ("accept",)


def test_the_number_of_new_links_is_bounded_by_kind() -> None:
    assert codes(page(links(15))) == ("accept",)
    assert codes(page(links(16))) == ("review", "links")
    assert codes(page(links(30) + "\nA typo less.", links(30) + "\nA tyop less.")) == ("accept",)
    assert codes(Submission("comment", "", links(7), VISITOR)) == ("review", "links")
    assert codes(Submission("comment", "", links(6), VISITOR)) == ("accept",)
    assert codes(Submission("suggestion", "", links(7), VISITOR)) == ("review", "links")
    assert codes(page(links(3)), Policy(page_links=2)) == ("review", "links")
    assert "16" in str(judge(page(links(16))))


def test_the_sites_words_and_domains() -> None:
    policy = Policy(words=("horse dewormer", "фу"), domains=("bad.example",))
    assert codes(page("Take H0rse  dewormers."), policy) == ("review", "words")
    assert codes(page("ФУ"), policy) == ("review", "words")
    assert codes(page("Horse. Dewormer"), policy) == ("review", "words"), "no sign between them hides a phrase"
    assert codes(page("A horse."), policy) == ("accept",)
    assert codes(page("See https://x.bad.example/y"), policy) == ("review", "domains")
    assert codes(page("See shop.bad.example"), policy) == ("review", "domains"), "without a scheme"
    assert codes(page("See https://notbad.example"), policy) == ("accept",)
    assert "bad.example" in str(judge(page("See https://bad.example"), policy))


def test_forms_of_programs_are_refused_with_a_sentence() -> None:
    assert codes(page("x", form=FormTrace(trap="x"))) == ("refuse", "trap")
    assert codes(page("x https://a.example", form=FormTrace(seconds=1.9))) == ("refuse", "fast")
    assert codes(page("x https://a.example", form=FormTrace(seconds=1.9)), Policy(form_seconds=0)) == ("accept",)
    both = page("Buy cheap viagra, order now! https://a.example", form=FormTrace(trap="x"))
    assert codes(both) == ("refuse", "trap"), "a program learns nothing of the rules of the text"


def test_the_sites_question_is_for_visitors_without_an_account() -> None:
    policy = Policy(question="What flows through Emden?", answers=("the Ems", "Ems"))
    asked = page("A text.", form=FormTrace())
    assert codes(asked, policy) == ("refuse", "question")
    assert codes(replace(asked, form=FormTrace(answer=" EMS! ")), policy) == ("accept",)
    assert codes(replace(asked, author=Author(has_account=True)), policy) == ("accept",)


def test_first_edits_wait_or_are_marked_if_the_site_says_so() -> None:
    edit = page("A text.")
    assert codes(edit, Policy(first_edits="review")) == ("review", "first")
    assert judge(edit, Policy(first_edits="mark")).is_marked
    assert not judge(edit).is_marked
    third = replace(edit, author=Author(has_account=True, edits=3))
    assert codes(third, Policy(first_edits="review")) == ("accept",)
    assert not judge(third, Policy(first_edits="mark")).is_marked


def test_pages_that_are_replaced_or_emptied() -> None:
    assert codes(page("lol", PROSE)) == ("review", "replaced")
    assert codes(page("", PROSE)) == ("review", "replaced")
    assert codes(page('{{redirect target="Harbour"}}', PROSE)) == ("accept",)
    assert codes(page("", "A short page.")) == ("accept",)
    assert codes(page(PROSE.replace("harbour", "port"), PROSE)) == ("accept",), "written anew"


def test_the_other_rules() -> None:
    assert codes(page("\n".join(f"https://a{n}.example" for n in range(4)))) == ("review", "crowd")
    same = "\n".join(f"See [[https://a.example/{n} this]] of it all." for n in range(5))
    assert "site" in codes(page(same))
    assert codes(page('""<div style="display:none">https://a.example</div>""')) == ("review", "hidden")
    assert codes(page("[url=https://a.example]a river[/url]")) == ("review", "board")
    assert codes(page("A t\u0435xt with l\u0435tt\u0435rs https://a.example")) == ("review", "disguised")
    assert codes(page("A text.", is_repeated=True)) == ("review", "repeated")
    flattery = Submission("comment", "", "Great post! Visit my site https://a.example", VISITOR)
    assert codes(flattery) == ("review", "flattery")
    assert codes(flattery, Policy(advertising=False)) == ("accept",)


@pytest.mark.parametrize(
    "name",
    [
        "Buy cheap viagra www.pills.example",
        "Docs/Buy cheap viagra",
        "BuyCheapViagraOnline",
        "Buy ch3ap v1agra",
        "`Buy cheap viagra`",
        "%%Buy cheap viagra%%",
        "Cheap pills www.pills.example",
        "Best online casino",
    ],
)
def test_a_new_name_that_advertises_waits_whatever_the_text(name: str) -> None:
    assert codes(page("x", name=name)) == ("review", "advertising")
    assert codes(page(PROSE, name=name)) == ("review", "advertising")
    assert codes(page("x", name=name), Policy(advertising=False)) == ("accept",)
    assert codes(page("x", name=name, author=Author(administers=True))) == ("accept",)


def test_one_word_of_praise_in_a_name_is_spam_only_above_a_link_with_few_words() -> None:
    link = "https://pills.example"
    assert codes(page(link, name="Cheap viagra")) == ("review", "advertising")
    assert codes(page("x", name="Cheap viagra")) == ("accept",)
    assert codes(page(f"{PROSE} {link}", name="Payout of slot machines")) == ("accept",), "an article with a source"


@pytest.mark.parametrize(
    "name",
    [
        *("Casino de Monte-Carlo", "Booking.com", "Node.js", "Online casino", "Online pharmacy", "How to buy a boat"),
        *("IMG 2041", "MySite.example", "Discount", "C++", "AC/DC", "McDonald", "iPhone", "100%", "C#"),
    ],
)
def test_an_ordinary_name_is_accepted(name: str) -> None:
    assert codes(page("A text.", name=name)) == ("accept",)
    assert codes(page(f"{PROSE} https://source.example", name=name)) == ("accept",)
    assert codes(Submission("comment", "", "", VISITOR, name=name, former_name="Old")) == ("accept",)


def account(name: str) -> tuple[str, ...]:
    return codes(Submission("comment", "", "", VISITOR, name=name, is_account=True))


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [
        *(("best-casino-bonus", True), ("cheapviagra", True), ("Cheap viagra", True), ("ch3apv1agra", True)),
        *(("CasinoBonus777", True), ("personalloan-offer", True), ("viagra.com", True), ("viagra", False)),
        *(("Poker Site", True), ("Poker Site Fan", False), ("Best Poker Site Fan", True), ("Toto Site", False)),
        *(("xxxbestxxx", False), ("Pillsbury Cheap", False), ("cheapviagrass", False), ("Cheapside", False)),
    ],
)
def test_one_word_of_praise_beside_goods_is_enough_in_the_name_of_an_account(name: str, is_refused: bool) -> None:
    assert (account(name) == ("review", "advertising")) is is_refused
    assert (account(name) == ("accept",)) is not is_refused


def test_a_name_is_read_in_parts_where_its_words_are_run_together() -> None:
    goods, praise = TOPICS.joined, PITCHES.joined
    for word, count in (("cheapviagra", 1), ("buycheapviagranow", 2), ("viagra", 0), ("cheap", 0), ("cheapviagrax", 0)):
        assert run_together(word, goods, praise) == count, word
    assert run_together("cheapviagra" * 1_000, goods, praise) == 2
    assert codes(page("x", name="buycheapviagra")) == ("review", "advertising"), "of a page two words, as ever"
    assert codes(page("x", name="cheapviagra")) == ("accept",)
    assert codes(Submission("comment", "", "", VISITOR, name="buycheapviagra24", former_name="buycheapviagra24")) == (
        "accept",
    )


def test_the_sites_words_and_domains_count_in_names() -> None:
    policy = Policy(words=("horse dewormer",), domains=("bad.example", "site.example"))
    for name in ("HorseDewormer", "Docs/horse_dewormer", "H0rse dewormers", "h-o-r-s-e  dewormer"):
        assert codes(page("x", name=name), policy) == ("review", "words"), name
    for name in ("www.bad.example", "Spam_www.bad.example", "Spam/bad.example", "https://bad.example/x"):
        assert codes(page("x", name=name), policy) == ("review", "domains"), name
    assert codes(page("x", name="MySite.example"), policy) == ("accept",), "another site"


def test_of_a_rename_only_what_the_former_name_lacks_counts() -> None:
    policy = Policy(words=("viagra",), domains=("bad.example",))

    def renamed(former: str, name: str) -> tuple[str, ...]:
        return codes(Submission("comment", "", "", VISITOR, name=name, former_name=former), policy)

    assert renamed("Viagra", "Viagra (drug)") == ("accept",)
    assert renamed("bad.example", "bad.example (site)") == ("accept",)
    assert renamed("Sildenafil", "Viagra") == ("review", "words")
    assert renamed("Tides", "Best casino bonus, free spins")[0] == "review"


def test_a_note_is_no_code_and_no_open_block_hides_it() -> None:
    spam = "Buy cheap viagra online, order now! https://pills.example"
    for note in (f"%%{spam}%%", f"`{spam}`", f"##{spam}##", f"%%{spam}", f"```\n{spam}"):
        assert "advertising" in codes(page("A text.", note=note)), note
        assert "advertising" in codes(Submission("comment", "", "", VISITOR, note)), note
    for text in ("A text. %%(python)", "```\nA text."):
        assert "advertising" in codes(page(text, note=spam)), text
    assert codes(page(f"%%{spam}%%")) == ("accept",), "code in a text is quoted"


def test_a_repetition_is_known_by_the_text_alone() -> None:
    one, other = page("A text.", note="one", name="One"), page("A text.", note="another", name="Other")
    assert one.words_of_text == other.words_of_text == ["a", "text"]


def test_every_reason_has_a_sentence() -> None:
    for code in REASONS:
        values = {"count": 1, "most": 2, "words": "w", "sites": "s", "site": "s"}
        assert "{" not in str(Reason(code, values))
    assert str(Reason("of a later version")) == "of a later version"


def test_settings_are_kept_as_what_differs_from_the_defaults() -> None:
    assert pack_policy(Policy()) == b"{}"
    policy = changed_policy(
        Policy(), {"words": "One\n\n two  words \nOne", "domains": "https://www.Bad.example/x\n*.b.example"}
    )
    assert policy.words == ("One", "two words")
    assert policy.domains == ("bad.example", "b.example")
    policy = changed_policy(
        policy, {"page_links": "3", "question": "Why?", "answers": ["because"], "advertising": "no", "judging": "no"}
    )
    assert policy_in(pack_policy(policy)) == policy
    assert policy_in(b"") == policy_in(b"no JSON") == policy_in(b"[]") == Policy()
    assert policy_in(b'{"page_links": "x", "comment_links": 2, "later": 1}') == Policy(comment_links=2)


@pytest.mark.parametrize(
    "given",
    [
        {"page_links": "-1"},
        {"page_links": "1001"},
        {"form_seconds": "61"},
        {"first_edits": "burn"},
        {"domains": "nothing"},
        {"question": "Why?"},
        {"words": "\n".join(f"w{n}" for n in range(2_001))},
        {"words": "x" * 201},
        {"nonsense": "1"},
    ],
)
def test_settings_that_make_no_sense_are_refused_by_a_sentence(given: dict[str, str]) -> None:
    with pytest.raises(BadPolicy, match=r"\."):
        changed_policy(Policy(), given)
