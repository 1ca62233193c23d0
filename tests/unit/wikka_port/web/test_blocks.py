"""Blocks in the browser: who is stopped and told why, that nothing typed is lost, and who makes and lifts them."""

from __future__ import annotations

import re

import pytest

from tests.support.memory_rows import MemoryRows
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_edit import text_in
from tests.unit.wikka_port.web.test_reviews import accounts
from wikka_port.rights.blocks import BLOCK, BLOCKS_MAX, BadBlock, Block
from wikka_port.rights.rules import RULES_ROW
from wikka_port.rights.stored import RIGHTS_AGE_S, StoredRights
from wikka_port.schema import PAGES

ADDRESS = {"REMOTE_ADDR": "203.0.113.7"}


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("P", "one", author="Olga", base=0)
    return made


def block(root: WikiClient, target: str, **fields: str) -> int:
    form = {**root.form("/-/blocks"), "target": target, "add": "1", **fields}
    return root.post("/-/blocks", {key: value for key, value in form.items() if key != "remove"}).status_code


def pass_a_second(web: WikiClient) -> None:
    web.wiki.clock_s += 1


def test_a_blocked_network_reads_and_is_told_why_before_it_types(web: WikiClient) -> None:
    form = {**web.form_of(web.get("/P/edit", environ_base=ADDRESS)), "body": "a long text", "save": "1"}
    comment = {**web.form_of(web.get("/P/comments", environ_base=ADDRESS)), "body": "a comment", "send": "1"}
    root = web.signed_in("Root", admin=True)
    assert block(root, "203.0.113.0/24", until="3 days", reason="a farm of links") == 303
    pass_a_second(web)
    shown = web.get("/P", environ_base=ADDRESS)
    assert shown.status_code == 200
    assert "/P/edit" not in shown.text
    assert "Suggest a change" not in shown.text
    told = r"203\.0\.113\.0/24 is blocked until 1970-01-15 13:46 UTC, by Root: a farm of links\."
    for path in ("/P/edit", "/P/comments", "/P/suggestion", "/New/edit"):
        assert re.search(told, web.get(path, environ_base=ADDRESS).text), path
    refused = web.post("/P/edit", form, environ_base=ADDRESS)
    assert refused.status_code == 403
    assert re.search(told, refused.text)
    assert text_in(refused) == "a long text"
    refused = web.post("/P/comments", comment, environ_base=ADDRESS)
    assert refused.status_code == 403
    assert text_in(refused) == "a comment"
    assert web.wiki.page("P").number == 1
    assert web.get("/P/edit", environ_base={"REMOTE_ADDR": "203.0.114.7"}).status_code == 200
    mia = web.signed_in("Mia")
    assert mia.get("/P/edit", environ_base=ADDRESS).status_code == 200, "people with an account are not meant"
    registered = web.post(
        "/-/register",
        {**web.form_of(web.get("/-/register", environ_base=ADDRESS)), "user": "Zoe", "password": "correct horse"},
        environ_base=ADDRESS,
    )
    assert registered.status_code == 403
    assert re.search(told, registered.text)


def test_a_blocked_account_is_stopped_until_the_end(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    assert block(root, "mia", until="12 h") == 303
    pass_a_second(web)
    assert "Mia is blocked until" in mia.get("/P/edit").text
    assert web.get("/P/edit").status_code == 200
    web.wiki.wall_ms = int(web.now * 1_000) + 12 * 3_600_000
    pass_a_second(web)
    assert mia.get("/P/edit").status_code == 200
    assert "Nobody is blocked." in root.get("/-/blocks").text


def test_administrators_make_and_lift_blocks_and_the_audit_has_both(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    for other in (web, web.signed_in("Mia")):
        assert other.get("/-/blocks").status_code == 403
        assert other.post("/-/blocks", {**other.form("/P/edit"), "target": "Root", "add": "1"}).status_code == 403
    assert block(root, "Mia", accounts="1") == 303
    assert block(root, "2001:db8::/32", accounts="1", until="", reason="x") == 303
    shown = root.get("/-/blocks").text
    assert "for good" in shown
    assert "with accounts" in shown
    first = root.form("/-/blocks")
    lifted = re.search('name="remove" value="([0-9a-f]{16})"', shown)
    assert lifted is not None
    assert root.post("/-/blocks", {**first, "remove": lifted[1]}).status_code == 303
    assert len(re.findall('name="remove"', root.get("/-/blocks").text)) == 1
    assert sorted(one.what for one in accounts(web).audit.recent(3)) == ["block lifted", "blocked", "blocked"]


@pytest.mark.parametrize(
    ("target", "until"),
    [("Nobody", ""), ("Root", ""), ("0.0.0.0/0", ""), ("Mia", "soon"), ("", ""), ("203.0.113.0/33", "")],
)
def test_a_block_that_makes_no_sense_is_refused_and_its_form_comes_back(
    web: WikiClient, target: str, until: str
) -> None:
    web.signed_in("Mia")
    root = web.signed_in("Root", admin=True)
    form = {**root.form("/-/blocks"), "target": target, "until": until, "reason": "why so", "add": "1"}
    refused = root.post("/-/blocks", form)
    assert refused.status_code == 400
    assert 'value="why so"' in refused.text
    assert not web.wiki.rights.blocks()


def test_the_address_of_an_author_under_review_fills_in_the_form(web: WikiClient) -> None:
    farm = " ".join(f"https://farm{number}.example" for number in range(20))
    form = {**web.form_of(web.get("/P/edit", environ_base=ADDRESS)), "body": farm, "save": "1"}
    web.now += 60
    place = web.post("/P/edit", form, environ_base=ADDRESS).headers["Location"]
    root = web.signed_in("Root", admin=True)
    assert "/-/blocks?target=203.0.113.7" in root.get(place).text
    assert 'value="203.0.113.7"' in root.get("/-/blocks?target=203.0.113.7").text
    assert block(root, "203.0.113.7") == 303
    pass_a_second(web)
    refused = root.post("/-/held", {**root.form(place), "accept": "1"})
    assert refused.status_code == 409, "the rights of its author are judged again"


def test_a_block_counts_in_every_process_within_a_second_and_no_longer_than_it_lasts() -> None:
    rows, clock, wall = MemoryRows(), [0.0], [1_000]
    here, there = (StoredRights(rows, lambda: clock[0], now_ms=lambda: wall[0]) for _ in range(2))  # type: ignore[arg-type]
    assert not there.rules().blocks
    here.add_block(Block("0" * 16, user="Mia", until_ms=5_000))
    assert here.rules().blocks, "at once in the process that made it"
    clock[0] += RIGHTS_AGE_S
    assert RIGHTS_AGE_S < 1
    assert there.rules().blocks
    wall[0] = 5_000
    clock[0] += RIGHTS_AGE_S
    assert not there.rules().blocks, "though the row is unchanged"
    assert any(column.startswith(BLOCK) for column in rows.row(PAGES, RULES_ROW))
    here.add_block(Block("1" * 16, user="Eve"))
    assert list(rows.row(PAGES, RULES_ROW)) == [BLOCK + b"1" * 16], "what is over has gone"
    here.change_rules("", {}, here.rules())
    assert here.rules().blocks, "a change of lists keeps the blocks"
    here.remove_block("1" * 16)
    here.remove_block("no id")
    assert not here.rules().blocks


def test_the_number_of_blocks_is_bounded() -> None:
    rights = StoredRights(MemoryRows(), lambda: 0.0)  # type: ignore[arg-type]
    for number in range(BLOCKS_MAX):
        rights.add_block(Block(f"{number:016x}", user=f"U{number}"))
    with pytest.raises(BadBlock, match="500"):
        rights.add_block(Block("f" * 16, user="one more"))
