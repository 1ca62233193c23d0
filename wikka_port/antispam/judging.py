"""(pure) The judgement on a submission: an edit, a comment or a suggestion, before it is saved.

    accept    it is saved
    review    its text is kept, and waits for an administrator (``editing.suggestions``); its author sees that
    refuse    its author gets the form back with the text as typed, and changes what the reasons say

Invariants:
    J1. Administrators pass, and accounts that are TRUSTED_AGE_S old and have TRUSTED_EDITS edits, and programs with
        keys of these: whatever the text.  All others are judged alike, with an account or without.
    J2. Only what a submission adds is judged (``additions``): links and words that the page has already do not count.
    J3. A text without a new link, name of a site or listed word is accepted, unless it takes away nearly a whole page,
        repeats what others have added just before, or is advertising throughout.  Exceptions are settings of the site
        (its question, its list of words, the review of first edits).  A new name of a page or a file is judged as words
        beside the text, and counts for no rule as a part of it.
    J4. Each reason is a sentence for the author, which says what to change.  Nothing typed is lost by a judgement.
    J5. Refusals come first: a reason for a review is no news to a program that fills in forms.
    J6. The judgement follows from its arguments alone; its cost is linear in the texts.

Rules, in the order of ``_RULES_OF_FORM`` and ``_RULES_OF_TEXT``.  A rule of a form is a refusal, since the author can
repair it at once; a rule of the text is a review, since only a person can tell a list of sources from a farm of links.

Knows nothing of the store, of HTTP and of the clock.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from wikka_port.antispam.additions import (
    Addition,
    Link,
    folded_words,
    is_of_domain,
    plain_words,
    run_together,
    stream,
    words_of_name,
)
from wikka_port.antispam.advertising import (
    AMBIGUOUS,
    FLATTERY,
    OFFERS,
    PERSONS,
    PITCHES,
    PRAISE_OF_SELLERS,
    TOPICS,
)
from wikka_port.antispam.policy import DEFAULT_POLICY, Policy
from wikka_port.texts import N_, _

Kind = Literal["page", "comment", "suggestion"]
Action = Literal["accept", "review", "refuse"]

TRUSTED_AGE_S: Final = 4 * 24 * 3600  # as MediaWiki confirms accounts by itself
TRUSTED_EDITS: Final = 10
FIRST_EDITS: Final = 3  # of an account, which the setting ``first_edits`` means

# A text that is mostly links: at least so many new ones, and fewer words beside them.
CROWD_LINKS: Final = 4
CROWD_WORDS_PER_LINK: Final = 6
SAME_SITE_LINKS: Final = 4  # new links to one site ...
SAME_SITE_WORDS: Final = 12  # ... with fewer new words for each
# A page that is replaced: it was so long, and of its lines less is left.
REPLACED_CHARS: Final = 1_000
REPLACED_SHARE: Final = 0.1
REPLACED_SIZE: Final = 0.3  # and the new text is so much shorter; a page that is written anew is as long as before
# Advertising: a hit for so many words at least.
WORDS_PER_HIT: Final = 16
PITCHES_WITH_LINK: Final = 2
PITCHES_ALONE: Final = 4
NAME_PRAISE: Final = 2  # words of praise in a name that sells something; beside a site one suffices
DISGUISED_WORDS: Final = 2
PRAISES: Final = 2  # beside a link; one may be a person's
FLATTERY_WORDS: Final = 80  # a longer comment is about something
NAMED: Final = 5  # words or sites that a reason names

_DOUBTFUL: Final = AMBIGUOUS.joined
_GOODS: Final = TOPICS.joined - _DOUBTFUL
_REDIRECT: Final = re.compile(r"\{\{\s*redirect\b|^#redirect\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Author:
    has_account: bool = False
    administers: bool = False
    age_s: float = 0.0  # of the account
    edits: int = 0  # accepted ones of the account

    @property
    def is_trusted(self) -> bool:
        return self.administers or (self.has_account and self.age_s >= TRUSTED_AGE_S and self.edits >= TRUSTED_EDITS)

    @property
    def is_new(self) -> bool:
        return not self.has_account or self.edits < FIRST_EDITS


@dataclass(frozen=True, slots=True)
class FormTrace:
    """The traces that a person or a program leaves in a form."""

    seconds: float = 3600.0  # since it was made
    trap: str = ""  # a field that people do not see
    answer: str = ""  # to the site's question


@dataclass(frozen=True)
class Submission:
    kind: Kind
    old: str  # the text that it changes; "": none
    new: str
    author: Author
    note: str = ""
    form: FormTrace | None = None  # None: a program sent it without a form
    is_repeated: bool = False  # whether others, or the author, added this very text to several pages just before
    own_hosts: frozenset[str] = frozenset()  # of the wiki itself
    name: str = ""  # of a new page, file or account, or a new one; "": it has its name already
    is_account: bool = False  # whether the name is that of an account
    former_name: str = ""  # of a page that is renamed

    @cached_property
    def addition(self) -> Addition:
        """The addition of the text and its note, which is no markup; it stands first, so no open block hides it."""
        note = f"{plain_words(self.note)}\n" if self.note else ""
        return Addition(self.old, note + self.new, self.own_hosts)

    @cached_property
    def naming(self) -> Addition:
        """The addition of the name."""
        return Addition(words_of_name(self.former_name), words_of_name(self.name), self.own_hosts)

    @property
    def words_run_together(self) -> frozenset[str]:
        """The new words of the name in which others may be joined, with the digits in them; of an account all in one.

        The words in which digits imitate letters are ``naming.words``.
        """
        new, former = (folded_words(words_of_name(one), is_imitated=False) for one in (self.name, self.former_name))
        whole = ["".join(folded_words(self.name, is_imitated=False))] if self.is_account else []
        return frozenset({*new, *whole, *self.naming.words}) - frozenset(former)

    @property
    def words_of_text(self) -> list[str]:
        """The new words of the text alone, by which a repetition is known: each page has another name and note."""
        return (Addition(self.old, self.new) if self.note else self.addition).words


@dataclass(frozen=True, slots=True)
class Reason:
    code: str  # of REASONS
    values: Mapping[str, str | int] = field(default_factory=dict)

    def __str__(self) -> str:
        """The reason as a sentence for the author, with what to change."""
        said = REASONS.get(self.code, "")
        return _(said, **self.values) if said else self.code


@dataclass(frozen=True, slots=True)
class Verdict:
    action: Action
    reasons: tuple[Reason, ...] = ()
    is_marked: bool = False  # whether the edit is to be marked as one of a new author

    def __str__(self) -> str:
        return " ".join(map(str, self.reasons))


ACCEPTED: Final = Verdict("accept")
FIRST: Final = "first"  # the reason that is about the author alone

REASONS: Final[Mapping[str, str]] = {
    "trap": N_(
        "A field was filled in that people do not see; perhaps a program of your browser did it. It is empty again: "
        "please send the form once more."
    ),
    "fast": N_("That was faster than a person types a link. Please send it once more, in a few seconds."),
    "question": N_("Please answer the question above the button: it keeps programs out."),
    "links": N_("It adds {count} links to other sites, and {most} are the most: leave some out."),
    "words": N_("It has words that this wiki does not want ({words}): leave them out."),
    "domains": N_("It links to sites that this wiki does not want ({sites}): leave these links out."),
    "crowd": N_("It is made of links, with few words beside them: say in words what they are about."),
    "site": N_("It leads to {site} again and again: one link to it is enough."),
    "advertising": N_("It reads like advertising ({words}): say what readers want to know, not what is for sale."),
    "flattery": N_("It fits every page, and leads to another site: write what is about this page, without the link."),
    "hidden": N_("It has text that readers do not see: leave its style out."),
    "board": N_("Links like [url=…] are no markup of this wiki: write them as the help below the editor says."),
    "disguised": N_("It has words with letters of several alphabets, or invisible ones: type these words anew."),
    "replaced": N_("Nearly the whole page is gone by it: put back what should stay, or say in the note why not."),
    "repeated": N_("The same text was added to several pages just before: each page needs its own."),
    FIRST: N_("The first edits of new authors are looked at before they are saved: there is nothing to change."),
}

Rule = Callable[[Submission, Policy], Reason | None]


def judge(submission: Submission, policy: Policy = DEFAULT_POLICY) -> Verdict:
    author = submission.author
    if author.is_trusted or not policy.judging:
        return ACCEPTED
    refused = _found(_RULES_OF_FORM, submission, policy)
    if refused:
        return Verdict("refuse", refused)
    doubtful = _found(_RULES_OF_TEXT, submission, policy)
    if doubtful:
        return Verdict("review", doubtful)
    if author.is_new and policy.first_edits == "review":
        return Verdict("review", (Reason(FIRST),))
    return Verdict("accept", is_marked=author.is_new and policy.first_edits == "mark")


def _found(rules: tuple[Rule, ...], submission: Submission, policy: Policy) -> tuple[Reason, ...]:
    reasons = (rule(submission, policy) for rule in rules)
    return tuple(one for one in reasons if one is not None)


# --- rules of the form -----------------------------------------------------------------------------


def _trap(submission: Submission, _policy: Policy) -> Reason | None:
    form = submission.form
    return Reason("trap") if form is not None and form.trap else None


def _fast(submission: Submission, policy: Policy) -> Reason | None:
    form = submission.form
    if form is None or form.seconds >= policy.form_seconds or not submission.addition.sites:
        return None
    return Reason("fast")


def _question(submission: Submission, policy: Policy) -> Reason | None:
    form = submission.form
    if form is None or submission.author.has_account or not policy.question:
        return None
    given = folded_words(form.answer)
    return None if any(given == folded_words(answer) for answer in policy.answers) else Reason("question")


# --- rules of the text -----------------------------------------------------------------------------


def _links(submission: Submission, policy: Policy) -> Reason | None:
    most = {
        "page": policy.page_links,
        "comment": policy.comment_links,
        "suggestion": policy.suggestion_links,
    }[submission.kind]
    count = len(submission.addition.links)
    return Reason("links", {"count": count, "most": most}) if count > most else None


def _words(submission: Submission, policy: Policy) -> Reason | None:
    if not policy.words:
        return None
    found = submission.addition.count(policy.terms) + submission.naming.count(policy.terms)
    return Reason("words", {"words": _listed(found)}) if found else None


def _domains(submission: Submission, policy: Policy) -> Reason | None:
    sites = submission.addition.sites | submission.naming.sites
    found = sorted(site for site in sites if is_of_domain(site, policy.domains))
    return Reason("domains", {"sites": ", ".join(found[:NAMED])}) if found else None


def _crowd(submission: Submission, _policy: Policy) -> Reason | None:
    addition = submission.addition
    count = len(addition.links)
    if count < CROWD_LINKS or addition.words_beside_addresses >= CROWD_WORDS_PER_LINK * count:
        return None
    return Reason("crowd")


def _same_site(submission: Submission, _policy: Policy) -> Reason | None:
    """Find links that lead to one site again and again, from words that say little of it.

    A list of sources of one publisher has more words for each of them.
    """
    addition = submission.addition
    by_site = Counter(link.host for link in addition.links)
    if not by_site:
        return None
    site, count = by_site.most_common(1)[0]
    if count < SAME_SITE_LINKS or len(addition.words) >= SAME_SITE_WORDS * count:
        return None
    return Reason("site", {"site": site})


def _advertising(submission: Submission, policy: Policy) -> Reason | None:
    if not policy.advertising:
        return None
    addition = submission.addition
    topics, pitches = addition.count(TOPICS), addition.count(PITCHES)
    hits = topics.total() + pitches.total()
    found = topics + pitches
    is_dense = hits * WORDS_PER_HIT >= len(addition.words)
    if addition.sites:
        is_pitch = (len(topics) >= 1 and len(pitches) >= PITCHES_WITH_LINK) or len(pitches) > PITCHES_WITH_LINK
    else:
        is_pitch = len(topics) >= 1 and len(pitches) >= PITCHES_ALONE
    if (is_pitch and is_dense) or any(map(_is_advertised, addition.links)):
        return Reason("advertising", {"words": _listed(found)})
    named = _advertised_name(submission)
    return Reason("advertising", {"words": _listed(named)}) if named else None


def _is_advertised(link: Link) -> bool:
    """Return whether the title or the host of a link says what is sold, and praises it."""
    words = stream(folded_words(f"{link.title} . {link.host}"))
    return bool(TOPICS.count_in(words)) and bool(PITCHES.count_in(words))


def _advertised_name(submission: Submission) -> Counter[str]:
    """Return what a new name sells and how it praises that, or nothing: lists and mails show names as links.

    A single word of praise is enough beside a site in the name, or if the text is a link with few words.  So it is in
    the name of an account, which has no text: there goods and a site suffice, too.
    """
    naming, addition, praises = submission.naming, submission.addition, PITCHES
    if submission.is_account:
        praises = PRAISE_OF_SELLERS
    topics, pitches = naming.count(TOPICS), naming.count(praises)
    praise = {word for term in pitches for word in term.split()} - {word for term in topics for word in term.split()}
    runs = {word: run_together(word, _GOODS, praises.joined - _DOUBTFUL) for word in submission.words_run_together}
    found = topics + pitches + Counter({word for word, count in runs.items() if count})
    most = max(len(praise) if topics else 0, *runs.values(), 0)
    if submission.is_account:
        is_offer = _is_sellers(topics, praise, most, naming) or (bool(topics) and bool(naming.sites))
        return found if is_offer else Counter()
    if not most:
        return Counter()
    is_short = (len(topics) + len(pitches)) * WORDS_PER_HIT >= len(addition.words)
    is_offer = most >= NAME_PRAISE or bool(naming.sites) or (bool(addition.sites) and is_short)
    return found if is_offer else Counter()


def _is_sellers(topics: Counter[str], praise: set[str], most: int, naming: Addition) -> bool:
    """Return whether the name of an account is a seller's: one word of praise is enough, unless persons have it, too.

    ``most`` is the number of words of praise, two at most where they are run together.
    """
    if most >= NAME_PRAISE or not most:
        return most >= NAME_PRAISE
    is_ambiguous = any(AMBIGUOUS.count_in(stream([*words])) for words in (topics, praise) if words)
    return not is_ambiguous and not naming.count(PERSONS)


def _flattery(submission: Submission, policy: Policy) -> Reason | None:
    addition = submission.addition
    if not policy.advertising or not addition.sites or len(addition.words) > FLATTERY_WORDS:
        return None
    praises, offers = addition.count(FLATTERY), addition.count(OFFERS)
    return Reason("flattery") if len(praises) >= PRAISES or (praises and offers) else None


def _hidden(submission: Submission, _policy: Policy) -> Reason | None:
    addition = submission.addition
    return Reason("hidden") if addition.has_hidden_text and addition.sites else None


def _board(submission: Submission, _policy: Policy) -> Reason | None:
    return Reason("board") if submission.addition.has_board_marks else None


def _disguised(submission: Submission, _policy: Policy) -> Reason | None:
    addition = submission.addition
    return Reason("disguised") if addition.disguised >= DISGUISED_WORDS and addition.sites else None


def _replaced(submission: Submission, _policy: Policy) -> Reason | None:
    addition = submission.addition
    if len(submission.old) < REPLACED_CHARS or addition.kept_share >= REPLACED_SHARE:
        return None
    if addition.size_share >= REPLACED_SIZE or _REDIRECT.search(submission.new):
        return None
    return Reason("replaced")


def _repeated(submission: Submission, _policy: Policy) -> Reason | None:
    return Reason("repeated") if submission.is_repeated else None


def _listed(found: Mapping[str, int] | None) -> str:
    return ", ".join(term.replace("  ", " ") for term in sorted(found or {})[:NAMED])


_RULES_OF_FORM: Final[tuple[Rule, ...]] = (_trap, _fast, _question)
_RULES_OF_TEXT: Final[tuple[Rule, ...]] = (
    *(_links, _words, _domains, _crowd, _same_site, _advertising, _flattery),
    *(_hidden, _board, _disguised, _replaced, _repeated),
)
