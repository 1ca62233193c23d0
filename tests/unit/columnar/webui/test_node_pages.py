"""The pages of a node that does not lead: readiness, health, metrics, and the way to the leader's pages."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from werkzeug.test import Client, TestResponse

from columnar.model.node_messages import NamedFacts, ServerFacts
from columnar.webui.families import of_node
from columnar.webui.node_pages import NodePages
from columnar.webui.node_status import LeaderStatus, LeaseStatus, NodeStatus
from columnar.webui.pages import environment

SERVERS = (NamedFacts("n2-s1", ServerFacts(pid=7, connections=3)), NamedFacts("n2-s2", ServerFacts()))
LEADER = LeaderStatus("h1:9096", 41, "http://h1:9095/")
WELL = NodeStatus("9.9", "h:9090", "/srv/data", 75.0, "n2.4", LEADER, LeaseStatus(1.25, 0.5), SERVERS, 1)


def visit(status: NodeStatus, path: str, code: int = 200) -> str:
    answer = Client(NodePages(lambda: status, environment(), "here", None)).get(path)
    assert answer.status_code == code
    return answer.get_data(as_text=True)


def answer_of(leader: LeaderStatus, path: str, *, host: str = "h2:9095", method: str = "GET") -> TestResponse:
    pages = NodePages(lambda: replace(WELL, leader=leader), environment(), "here", None)
    return Client(pages).open(path, method=method, base_url=f"http://{host}/")


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/servers", "http://h1:9095/servers"),
        ("/where?table=t&row=%FF%0a", "http://h1:9095/where?table=t&row=%FF%0a"),
        ("/tables/a%0d%0aSet-Cookie:x", "http://h1:9095/tables/a%0D%0ASet-Cookie:x"),
        ("/tables/%c3%a4", "http://h1:9095/tables/%C3%A4"),
    ],
)
def test_a_page_of_the_whole_cluster_is_found_by_any_node(path: str, location: str) -> None:
    for method in ("GET", "HEAD"):
        answer = answer_of(LEADER, path, method=method)
        assert (answer.status_code, answer.headers["Location"]) == (307, location)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("leader", "says"),
    [
        (LeaderStatus(), "The other pages are at the node that leads: no node leads now."),
        (LeaderStatus("h1:9096", 41), "h1:9096 leads, whose pages have no known address."),
        (LeaderStatus("h2:9096", 41, "http://h2:9095/"), "h2:9096 leads, http://h2:9095/."),
    ],
)
def test_without_another_node_to_go_to_the_answer_names_the_leader(leader: LeaderStatus, says: str) -> None:
    """A node that leads without its catalogue does not send a visitor to itself."""
    answer = answer_of(leader, "/servers")
    assert answer.status_code == 404
    text = answer.get_data(as_text=True)
    assert text.startswith("There is /, /health, /readyz, /livez and /metrics.")
    assert says in text


def test_a_node_sends_no_form_anywhere() -> None:
    answer = answer_of(LEADER, "/servers", method="POST")
    assert answer.status_code == 404
    assert "Location" not in answer.headers


def test_metrics_of_a_node_are_whole_as_open_metrics() -> None:
    pages = NodePages(lambda: WELL, environment(), "here", None)
    answer = Client(pages).get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert "columnar_lease_holds" in {one.name for one in open_metrics(answer.get_data(as_text=True))}


def test_a_node_shows_its_lease_its_leader_and_its_clock() -> None:
    text = visit(WELL, "/metrics")
    for line in (
        "columnar_node_ready 1.0",
        "columnar_node_leads 0.0",
        "columnar_leader_epoch 41.0",
        "columnar_lease_holds 1.0",
        "columnar_lease_left_seconds 1.25",
        "columnar_clock_offset_seconds 0.5",
        'columnar_server_up{server="n2-s1"} 1.0',
        'columnar_server_up{server="n2-s2"} 0.0',
        'columnar_connections{server="n2-s1"} 3.0',
    ):
        assert f"{line}\n" in text, line
    names = re.findall(r"^# HELP (\S+) ", text, flags=re.M)
    assert len(names) == len(set(names)), "Prometheus refuses a page that names a family twice"


def test_a_node_without_its_lease_is_not_ready_and_says_so_in_one_line() -> None:
    status = replace(WELL, lease=LeaseStatus(-3.0, 0.0), obstacles=("the lease does not hold", "no node leads"))
    text = visit(status, "/metrics")
    for line in ("columnar_node_ready 0.0", "columnar_lease_holds 0.0", "columnar_lease_left_seconds 0.0"):
        assert f"{line}\n" in text, line
    assert visit(status, "/readyz", 503) == visit(status, "/ready", 503) == "not ready: the lease does not hold\n"
    assert visit(status, "/livez") == visit(status, "/live") == "ok\n", "a restart gets no lease"
    page = visit(status, "/")
    assert "the lease does not hold" in page
    assert "no node leads" in page, "the page has every reason"
    assert visit(WELL, "/readyz") == visit(WELL, "/ready") == "ready\n"


def test_the_families_of_a_node_have_no_labels_and_the_only_node_has_no_lease() -> None:
    assert {family.labels for family in of_node(WELL)} == {()}
    only = {family.name for family in of_node(replace(WELL, lease=None))}
    assert only == {"columnar_node_ready", "columnar_node_leads", "columnar_leader_epoch"}
    assert "of the lease left" not in visit(replace(WELL, lease=None), "/")
