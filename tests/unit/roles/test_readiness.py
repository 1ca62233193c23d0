"""The readiness of a node: what makes it not ready at once, what only if it lasts, and the sentence for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from columnar.roles import leader_link
from columnar.roles.readiness import LEADERLESS_S, NodeFacts, Readiness, leaderless_s, start_failure
from columnar.webui.node_pages import ready_of

WELL = NodeFacts(is_leaving=False, has_lease=True, service="", folder="", servers=2, taking=2, leader="", strays=())
LIMIT_S = 10.0


def test_a_node_to_which_nothing_is_wrong_is_ready() -> None:
    assert Readiness(LIMIT_S).note(WELL, 0.0) == ()
    answer = ready_of(())
    assert (answer.status_code, answer.get_data(as_text=True)) == (200, "ready\n")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"is_leaving": True}, "this node is drained until its next start: take another one"),
        ({"has_lease": False}, "the lease of this node does not hold, so its servers withhold answers"),
        (
            {"has_lease": False, "service": "the coordination service does not answer: e"},
            "the lease of this node does not hold, so its servers withhold answers: the coordination service does not "
            "answer: e",
        ),
        ({"folder": "the data folder stalls"}, "the data folder stalls"),
        ({"taking": 0}, "no server of this node takes connections yet"),
    ],
)
def test_a_node_that_could_not_answer_is_not_ready_from_the_first_look(wrong: dict[str, Any], sentence: str) -> None:
    readiness = Readiness(LIMIT_S)
    assert readiness.note(replace(WELL, **wrong), 0.0) == (sentence,)
    assert readiness.note(WELL, 0.1) == (), "ready again from the first look that finds nothing"
    answer = ready_of((sentence, "another"))
    assert (answer.status_code, answer.get_data(as_text=True)) == (503, f"not ready: {sentence}\n")


def test_a_node_without_servers_is_ready_to_lead() -> None:
    assert Readiness(LIMIT_S).note(replace(WELL, servers=0, taking=0), 0.0) == ()


def test_a_service_that_does_not_answer_is_no_obstacle_while_the_lease_holds() -> None:
    assert Readiness(LIMIT_S).note(replace(WELL, service="it does not answer"), 0.0) == ()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"leader": "no node leads"}, "no node leads"),
        ({"strays": ("n1-s1.3",)}, "server n1-s1.3 is not linked with the leader, or has no routes of it yet"),
    ],
)
def test_a_node_that_can_serve_meanwhile_is_not_ready_only_if_it_lasts(wrong: dict[str, Any], sentence: str) -> None:
    readiness, facts = Readiness(LIMIT_S), replace(WELL, **wrong)
    assert readiness.note(facts, 100.0) == ()
    assert readiness.note(facts, 100.0 + LIMIT_S - 0.1) == ()
    assert readiness.note(facts, 100.0 + LIMIT_S) == (sentence,)
    assert readiness.note(WELL, 111.0) == ()
    assert readiness.note(facts, 112.0) == (), "its time counts anew"


def test_obstacles_one_after_the_other_are_not_one_long_obstacle() -> None:
    """Servers that restart one after the other, with no look between them, and then a change of the leader."""
    readiness = Readiness(LIMIT_S)
    subjects = [{"strays": ("n1-s1.3",)}, {"strays": ("n1-s2.4",)}, {"leader": "no node leads"}]
    for number in range(60):
        facts = replace(WELL, **subjects[number // 6 % 3])  # type: ignore[arg-type]
        assert readiness.note(facts, float(number)) == ()
    (found,) = readiness.note(replace(WELL, leader="x", strays=("n1-s1.3",)), 65.0)
    assert found.startswith("server n1-s1.3 "), "which was the last one at the last look"


def test_what_cannot_answer_is_named_before_what_lacks_a_leader() -> None:
    readiness = Readiness(LIMIT_S)
    facts = replace(WELL, leader="no node leads", has_lease=False)
    readiness.note(facts, 0.0)
    lease, leader = readiness.note(facts, LIMIT_S)
    assert (lease.startswith("the lease"), leader) == (True, "no node leads")


def test_a_longer_lease_gives_an_election_more_time() -> None:
    assert leaderless_s(1.5) == LEADERLESS_S == leader_link.LEADER_WAIT_S, "as long as calls about tables wait"
    assert leaderless_s(15.0) == 60.0


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"leader": "there is no link with the leader at h:1: why"}, "h:1: why; see that all nodes mount the same"),
        ({"leader": "no node leads", "taking": 0}, "no node leads; see"),
        ({"taking": 0, "strays": ("n1-s1.3",)}, "server n1-s1.3 is not linked with the leader, or has no routes of it"),
        ({"taking": 0}, "no server of this node takes connections yet; its lines in this log say why"),
        ({"servers": 0, "taking": 0, "leader": "no node leads"}, "could link with within 60 s: no node leads; see"),
        ({}, "some regions have no server; 'columnar transitions' at another node says which and why"),
    ],
)
def test_a_start_that_failed_says_why_and_what_to_do(wrong: dict[str, Any], found: str) -> None:
    text = start_failure(replace(WELL, **wrong), 60.0)
    assert text.startswith(("the servers did not start within 60 s: ", "no node led that this one could link with "))
    assert found in text
    assert text.endswith(". Then start this node again")
