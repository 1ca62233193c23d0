"""Rights of a DokuWiki as lists: the same visitors pass, by a second reading of DokuWiki's own rules."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.support.seeds import seed
from wikka_port.imports.dokuwiki_accounts import DokuWikiUsers
from wikka_port.imports.dokuwiki_acl import READ_LEVEL, WRITE_LEVEL, Acl, DokuUser
from wikka_port.rights.acl import read_list, verdict
from wikka_port.rights.rules import Privilege
from wikka_port.wikkawiki.account_move import AccountReport

ANN, BOB, CAT = (
    DokuUser("ann", frozenset({"user", "staff"})),
    DokuUser("bob", frozenset({"user"})),
    DokuUser("cat", frozenset({"staff"})),
)
USERS = (ANN, BOB, CAT)
NAMES = {"ann", "bob", "cat"}


def level_by_patterns(text: str, page: str, user: DokuUser | None) -> int:
    """Read the lines as ``auth_aclcheck`` does: with a pattern for each place, from the page outwards."""
    login = user.login if user is not None else ""
    lines = [line.replace("%USER%", login) for line in text.splitlines() if login or "%USER%" not in line]
    names = ["@ALL"] if user is None else ["@ALL", login, *(f"@{group}" for group in user.groups)]
    who = "|".join(map(re.escape, names))
    places = [page]
    while ":" in page:
        page = page.rpartition(":")[0]
        places.append(f"{page}:*")
    for place in [*places, "*"]:
        found = [int(m[1]) for line in lines if (m := re.fullmatch(rf"{re.escape(place)}\s+(?:{who})\s+(\d+)", line))]
        if found:
            return max(found)
    return 0


def test_lists_admit_the_same_as_the_lines() -> None:
    number = seed(3913)
    print("seed", number)
    draw = Random(number)
    places = ["*", "a:*", "a:b:*", "a:p", "a:b:p", "user:%USER%:*"]
    for _ in range(500):
        lines = [
            f"{draw.choice(places)}\t{draw.choice(['@ALL', '@user', '@staff', 'ann', 'bob', '%USER%'])}"
            f"\t{draw.choice([0, 1, 2, 4, 8, 16])}"
            for _ in range(draw.randrange(8))
        ]
        text = "\n".join(lines)
        acl = Acl.of(text, USERS)
        stranger = DokuUser("eve", frozenset({"user"}))
        for page in ("p", "a:p", "a:b:p", "a:c:p", "user:ann:p"):
            lists = acl.lists(page, NAMES)
            for privilege, least in ((Privilege.READ, READ_LEVEL), (Privilege.WRITE, WRITE_LEVEL)):
                for user in (*USERS, stranger, None):
                    may = level_by_patterns(text, page, user) >= least
                    name = None if user is None else user.login
                    assert verdict(read_list(lists[privilege]), name, {}).allowed == may, (text, page, name, least)


def test_users_without_accounts_are_in_no_list() -> None:
    acl = Acl.of("*\t@ALL\t0\n*\tann\t8\n*\tbob\t8", USERS)
    assert acl.lists("p", {"bob"})[Privilege.READ] == "bob\n!*"


def test_a_list_that_is_too_long_admits_nobody() -> None:
    many = [DokuUser(f"user{number:04}", frozenset({"staff"})) for number in range(2_000)]
    acl = Acl.of("*\t@ALL\t0\n*\t@staff\t8", many)
    assert acl.lists("p", {one.login for one in many})[Privilege.READ] == "!*"


def test_those_who_may_edit_and_not_upload_are_named() -> None:
    acl = Acl.of("*\t@ALL\t1\n*\tann\t4\n*\tbob\t8\nno line\n", USERS)
    assert acl.weaker("*") == ["ann"]
    assert acl.unread == 1


def test_a_line_that_closes_a_place_does_so_however_it_is_written() -> None:
    """Without it the line of an outer place would let everybody in."""
    acl = Acl.of("*\t@ALL\t8\nteam:*\t@ALL\t0\tsince May\nboard:*\t@ALL\tnone\nstaff:*  @ALL\n", USERS)
    assert acl.unread == 2
    for page in ("team:p", "board:p", "staff:p"):
        assert acl.lists(page, NAMES)[Privilege.READ].endswith("!*")
    assert acl.lists("p", NAMES)[Privilege.READ] == "*"


@pytest.mark.parametrize(
    ("line", "kind", "problem"),
    [
        ("ann:$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy:A:a@b.example:user", "bcrypt", ""),
        ("ann:5f4dcc3b5aa765d61d8327deb882cf99:A:a@b.example:user", "md5", ""),
        ("ann:$1$abc$0123456789:A:a@b.example:user", "", "smd5"),
        ("ann:5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8:A:a@b.example:user", "", "sha1"),
        ("ann:rubbish:A:a@b.example:user", "", "no MD5"),
    ],
)
def test_each_kind_of_hash_is_taken_or_named(line: str, kind: str, problem: str) -> None:
    moved = next(iter(DokuWikiUsers(line, "@admin", AccountReport())))
    assert (moved.old.kind if moved.old is not None else "") == kind
    assert problem in moved.problem


def test_users_are_read_with_their_colons_groups_and_faults() -> None:
    report = AccountReport()
    text = "# <?php exit()?>\nann:x:Ann\\: A:ann@b.example:user,Admin\nbroken\n\n[x]:y:z:w:user\n"
    text += "ann:2:z:w:user\nbob:x:B:no mail:user"
    found = list(DokuWikiUsers(text, "boss,@admin", report))
    assert [(one.account.name, one.account.admin, one.account.email) for one in found] == [
        ("ann", True, "ann@b.example"),
        ("bob", False, ""),
    ]
    assert len(report.refused) == 1
    assert report.without_address == ["bob: 'no mail' is no mail address"]
