"""The attack corpus in a real browser, in its short form; the whole is ``python -m tests.proofs.wiki_payloads``."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.attack.browsing import watched
from tests.support.attack.campaign import FIXED, LEAVING, SECRET, Campaign
from tests.support.attack.payloads import families, payloads
from tests.support.attack.unsafe_server import unsafe_server
from tests.support.deep import spread
from tests.support.wiki_scene import SCRIPTED
from wikka_port.handlers import POSTABLE

NOTHING_TO_TYPE = {"claim", "confirm", "jobs", "moves", "unsubscribe"}


def test_the_corpus_is_large_and_each_payload_is_one() -> None:
    assert len(payloads()) == len(set(payloads())) >= 500
    assert all(len(family) >= 10 for family in families().values())
    assert sum(f"({number})" in payload for number, payload in enumerate(payloads())) >= 500, "they call, by number"


@pytest.mark.timeout(300)  # half a minute alone
def test_nothing_runs_and_nothing_is_refused_in_any_place_and_any_field(browser: Any) -> None:
    some = partial(spread, "pages of the attack corpus", one_in=3)
    campaign = Campaign(browser, each=1, share=8, names=1, fills=1, some=some)
    campaign.run()
    assert not campaign.findings, "\n".join(campaign.findings[:40])
    assert campaign.looks > 100
    attacked = {handler for handler, _ in campaign.typed}
    assert attacked >= POSTABLE - LEAVING - SCRIPTED.keys() - NOTHING_TO_TYPE, "a form is missing"
    some = {("edit", "body"), ("edit", "note"), ("register", "user"), ("acls", "read"), ("search", "q")}
    assert some <= campaign.typed
    assert not {field for _, field in campaign.typed} & FIXED - SECRET


@pytest.mark.parametrize(("path", "expected"), [("/", "ATTACK ran 1"), ("/strict", "ATTACK policy script-src")])
def test_what_would_run_is_noticed(browser: Any, path: str, expected: str) -> None:
    with unsafe_server() as url, watched(browser, url) as page:
        page.show(path)
        said = "\n".join(page.findings)
    for wanted in (
        expected,
        "attribute P onclick",
        "attribute P style",
        "address A href=javascript:",
        "element IFRAME",
    ):
        assert wanted in said, said
