"""The pages of servers by their content: who has what, the map of a table, where a row is, and what is bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from itertools import pairwise
from typing import TypeVar

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_metrics
from werkzeug.test import Client

from columnar.master.instructions import DrainServer, MoveRegion, UnassignRegion
from columnar.model.cluster_status_records import RegionStatus
from columnar.model.flow_status import FlowStatus, TriggerStatus
from columnar.model.histogram import Histogram
from columnar.model.measures import COUNTER, GAUGE, HISTOGRAM, Family, SlowRequest, by_label, single
from columnar.model.node_messages import NamedFacts, ServerFacts
from columnar.model.region_info import RegionInfo
from columnar.storage.watched_folder import Room
from columnar.webui.cluster_pages import COLOURS, cluster_pages, legend_of, strip_of
from columnar.webui.cluster_status import PageStatus
from columnar.webui.families import of_node
from columnar.webui.node_status import LeaderStatus, LeaseStatus, NodeStatus
from columnar.webui.pages import REGIONS_PER_PAGE
from tests.support.operated_cluster import OperatedCluster, table_infos

T = TypeVar("T")
BOUND_BYTES = 300_000


def node_families() -> Iterator[Family]:
    leader, lease = LeaderStatus("here:9096", 41, is_own=True), LeaseStatus(1.25, 0.5)
    servers = (NamedFacts("n1-s1", ServerFacts(pid=7)),)
    return of_node(
        NodeStatus("9.9", "h:9090", "/d", 75.0, "n1.1", leader, lease, servers, 1, obstacles=("it is drained",))
    )


class Visit:
    """Pages of a planned cluster."""

    def __init__(self, cluster: OperatedCluster) -> None:
        self.cluster = cluster
        self._client = Client(
            cluster_pages(self._ask, cluster.control.reports, self._status, self, "here", node=node_families)
        )

    def _ask(self, question: Callable[[], T], /) -> T:
        return question()

    def _status(self) -> PageStatus:
        look = self.cluster.control.reports.cluster_status()
        pause = Histogram()
        pause.observe(0.03)
        pauses = (("drain", pause.numbers),)
        kinds, tables = (("move", 2),), tuple(self.cluster.control.reports.tables())
        return PageStatus(
            "9.9", "here:9090", "/srv/data", 75.0, look, kinds, 1, tables, frozenset(), (("drain", 4),), pauses
        )

    def flows(self) -> tuple[list[FlowStatus], list[str]]:
        return [], []

    def room(self) -> Room | None:
        return Room(7, 9)

    def measures(self) -> tuple[dict[str, tuple[Family, ...]], list[str]]:
        of_s1 = by_label("columnar_forwarded", COUNTER, "Calls.", "method", [("get", 7), ("put", 1)])
        latency = Family(
            "columnar_request_seconds", HISTOGRAM, "Calls.", ("method",), ((("get",), Histogram().numbers),)
        )
        return {
            "s1": (of_s1, latency),
            "s3": (replace(of_s1, samples=of_s1.samples[:1]), single("columnar_uptime_seconds", GAUGE, "", 5)),
        }, ["s2"]

    def slow_requests(self) -> tuple[list[SlowRequest], list[str]]:
        about = "table=pages row=<b>; peer=127.0.0.1:4711"
        return [SlowRequest(1_764_176_531_000, 1_234, "getRow", about, "s1")], ["s2"]

    def triggers(self) -> tuple[list[TriggerStatus], list[str]]:
        return [TriggerStatus("links", "pages", "wiki:links", "paused", 12, 3.25, 1, 2, "ValueError: <b>")], ["s2"]

    def __call__(self, path: str, status: int = 200) -> str:
        answer = self._client.get(path)
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.get_data(as_text=True)

    def text(self, path: str) -> str:
        """What a person reads."""
        bare = re.sub(r"<(script|style|title)[^>]*>.*?</\1>", " ", self(path), flags=re.S)
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", bare)).split())


@pytest.fixture
def visit() -> Visit:
    return Visit(OperatedCluster(table_infos("pages", 6), 3))


def test_the_servers(visit: Visit) -> None:
    visit.cluster.cluster.ask(DrainServer("s2"))
    visit.cluster.rated({b"b": 40.0})
    text = visit.text("/servers")
    assert "3 of 3 servers up" in text
    assert "6 regions 0 without an owner" in text
    assert "1 servers died on balancer; auto-split on" in text
    assert "drained: it gets no region" in text
    assert re.search(r"s1 \.1 up for [\d.]+ s 3 ", text)
    assert "pages 6 2 46.3" in text
    assert visit("/") == visit("/servers")


def test_a_server(visit: Visit) -> None:
    busy = visit.cluster.control.reports.locate_row("pages", b"b").region
    visit.cluster.rated({b"b": 40.0})
    text = visit.text(f"/servers/{busy.server}")
    assert f"{busy.server} .1 : up" in text
    next_one = visit.cluster.control.reports.server_regions(busy.server)[1]
    assert text.index(busy.info.encoded) < text.index(next_one.info.encoded)
    assert f"pages {busy.info.encoded[:8]} goes to {busy.server}: new" in text
    assert "There is no server s9" in visit("/servers/s9", 404)


def test_the_map_of_a_table(visit: Visit) -> None:
    page = visit("/tables/pages")
    rects = re.findall(r'<rect class="own(\d)" x="([\d.]+)%" y="0" width="([\d.]+)%"', page)
    assert len(rects) == 6
    assert [round(float(left)) for _, left, _ in rects] == [0, 17, 33, 50, 67, 83]
    owners = [one.server for one in visit.cluster.control.reports.regions("pages")]
    assert [colour for colour, _, _ in rects] == [str(int(owner[1])) for owner in owners]
    assert re.findall(r"<text [^>]*>(.*?)</text>", page) == owners
    assert "s1 2 regions, load 2.0" in visit.text("/tables/pages")
    assert page.count("<tr>") == 7
    assert "There is no table none" in visit("/tables/none", 404)


def test_a_region_that_nobody_has_is_on_the_map(visit: Visit) -> None:
    info = visit.cluster.control.reports.locate_row("pages", b"b").region.info
    visit.cluster.cluster.ask(UnassignRegion(info.region_id))
    visit.cluster.cluster.run(visit.cluster.now_ms() + 500)
    page = visit("/tables/pages")
    assert re.findall(r"<text [^>]*>(.*?)</text>", page)[1] == "offline"
    assert '<rect class="own0"' in page
    assert "nobody 1 region, load" in visit.text("/tables/pages")


def test_where_a_row_is(visit: Visit) -> None:
    region = visit.cluster.control.reports.locate_row("pages", b"b").region
    text = visit.text("/where?table=pages&row=bb")
    assert f"On {region.server} : OPEN for" in text
    assert f"Region {region.info.encoded}" in text
    assert "b to before c of pages" in text
    assert "What its requests may wait for Nothing: the region is open" in text
    visit.cluster.cluster.ask(UnassignRegion(region.info.region_id))
    visit.cluster.cluster.run(visit.cluster.now_ms() + 500)
    text = visit.text("/where?table=pages&row=bb")
    assert "Nowhere: OFFLINE for" in text
    assert f"'columnar assign {region.info.encoded}' opens it" in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("", "Where is my row, and why is it slow?"),
        ("?table=none&row=x", "TableNotFoundException: none"),
        ("?table=pages&row=\\xFFz", "f to before the end of pages"),
        ("?table=pages&row=<script>", "Its rows first to before b of pages"),
        ("?table=pages&row=" + "r" * 40_000, "IllegalArgument"),
    ],
    ids=["nothing", "no table", "bytes", "markup", "too long"],
)
def test_what_is_typed_there(visit: Visit, asked: str, said: str) -> None:
    assert said in visit.text("/where" + asked)
    assert "<script>" not in visit("/where" + asked)


def test_the_map_leads_to_each_region_whatever_its_key() -> None:
    """Keys are shown by their first 80 bytes; a link has them whole, or leads to the table."""
    starts = [b"", b'"<b>&?row=#', b"https://example.org/" + b"p" * 90, b"q\\x00\xff\x00" * 100, b"z" * 2_001]
    bounds = list(pairwise([*starts, b""]))
    infos = [RegionInfo("pages", 2 + number, start, end) for number, (start, end) in enumerate(bounds)]
    visit = Visit(OperatedCluster(infos, 3))
    rows = re.findall(r'<td class="key"><a href="(/where[^"]+)"', visit("/tables/pages"))
    fields = re.findall(r'<a href="(/where[^"]+)"><rect', visit("/tables/pages"))
    assert len(rows) == len(fields) == len(infos)
    assert rows == fields
    for link, info in zip(rows[:-1], infos, strict=False):
        assert info.encoded in visit(unescape(link))
    assert unescape(rows[-1]) == "/where?table=pages"


def test_transitions_and_decisions(visit: Visit) -> None:
    assert "Nothing: every region is where its owner row says" in visit.text("/transitions")
    region = visit.cluster.control.reports.locate_row("pages", b"b").region
    target = "s1" if region.server != "s1" else "s2"
    visit.cluster.cluster.ask(MoveRegion(region.info.region_id, target))
    text = visit.text("/transitions")
    assert f"move pages b CLOSING 0.0 s {region.server} {target} asked for {region.info.encoded}" in text
    assert f"0.0 s give pages {region.info.encoded[:8]} goes to {target}: asked for" in visit.text("/decisions")


def test_regions_that_wait_are_no_rest(visit: Visit) -> None:
    for server in list(visit.cluster.cluster.servers):
        visit.cluster.cluster.kill(server)
    visit.cluster.cluster.run(visit.cluster.now_ms() + 500)
    text = visit.text("/transitions")
    assert "no server is up: 6 regions have no owner" in text
    assert "Nothing" not in text
    assert text.count("waiting pages") == 6


def test_regions_that_nobody_serves_are_on_the_first_page(visit: Visit) -> None:
    assert "Regions that nobody serves" not in visit.text("/")
    for server in list(visit.cluster.cluster.servers):
        visit.cluster.cluster.kill(server)
    visit.cluster.cluster.run(visit.cluster.now_ms() + 500)
    text = visit.text("/")
    assert text.count("OFFLINE") == 6
    assert "had it last, and no server may take it as yet" in text


def test_requests_of_all_servers(visit: Visit) -> None:
    text = visit.text("/requests")
    assert "s2 did not answer in time" in text
    assert "2025-11-26 17:02:11 1,234 ms getRow s1 table=pages row=<b>; peer=127.0.0.1:4711" in text
    assert "<b>" not in visit("/requests")


def test_a_catalogue_that_cannot_be_written_is_on_every_page(visit: Visit) -> None:
    assert "columnar_catalogue_writable 1.0" in visit("/metrics")
    visit.cluster.cluster.event("unsound", "the disk is full")
    for path in ("/servers", "/transitions", "/where?table=pages&row=bb"):
        assert "for 0.0 s the catalogue could not be written: the disk is full." in visit.text(path)
    assert "columnar_catalogue_writable 0.0" in visit("/metrics")
    assert visit("/health") == "ok\n", "rows are served"


def test_the_triggers_of_all_servers(visit: Visit) -> None:
    text = visit.text("/triggers")
    assert "s2 did not answer in time" in text
    assert "links pages paused 0.0/s 12 3.2 s 1 2 ValueError: <b>" in text
    assert "<b>" not in visit("/triggers")


def test_metrics_are_whole_as_open_metrics(visit: Visit) -> None:
    """The parser of the library is strict: names, suffixes, the order of samples, and the end."""
    answer = visit._client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    found = {one.name for one in open_metrics(answer.get_data(as_text=True))}
    assert {"columnar_server_up", "columnar_fenced", "columnar_region_pause_seconds"} <= found
    assert found == {one.name.removesuffix("_total") for one in plain_metrics(visit("/metrics"))}


def test_metrics_and_health(visit: Visit) -> None:
    assert visit("/health") == "ok\n"
    text = visit("/metrics")
    for line in (
        'columnar_server_up{server="s2"} 1.0',
        'columnar_server_regions{server="s3"} 2.0',
        'columnar_transitions{kind="move"} 2.0',
        "columnar_unassigned_regions 0.0",
        "columnar_fenced_total 1.0",
        'columnar_moves_total{reason="drain"} 4.0',
        'columnar_region_pause_seconds_bucket{le="0.025",reason="drain"} 0.0',
        'columnar_region_pause_seconds_bucket{le="0.05",reason="drain"} 1.0',
        'columnar_region_pause_seconds_sum{reason="drain"} 0.03',
        'columnar_table_regions{table="pages"} 6.0',
        'columnar_table_enabled{table="pages"} 1.0',
        'columnar_server_told{server="s1"} 1.0',
        'columnar_server_told{server="s2"} 0.0',
        'columnar_uptime_seconds{server="s3"} 5.0',
        'columnar_forwarded_total{method="get",server="s1"} 7.0',
        'columnar_forwarded_total{method="get",server="s3"} 7.0',
        'columnar_forwarded_total{method="put",server="s1"} 1.0',
        'columnar_request_seconds_bucket{le="+Inf",method="get",server="s1"} 0.0',
        "columnar_node_ready 0.0",
        "columnar_node_leads 1.0",
        "columnar_leader_epoch 41.0",
        "columnar_lease_holds 1.0",
        "columnar_lease_left_seconds 1.25",
        "columnar_clock_offset_seconds 0.5",
    ):
        assert line in text, line
    names = re.findall(r"^# TYPE (\S+) ", text, flags=re.M)
    assert len(names) == len(set(names)), "Prometheus refuses a page that names a family twice"
    for server in list(visit.cluster.cluster.servers):
        visit.cluster.cluster.kill(server)
    visit.cluster.cluster.run(visit.cluster.now_ms() + 500)
    assert visit("/health", 503) == "unhealthy: no server is up\n"
    assert "columnar_unassigned_regions 6.0" in visit("/metrics")


def test_all_regions_are_reached_and_each_page_is_bounded() -> None:
    starts = [b"", *(b"%05d" % n for n in range(1, 2 * REGIONS_PER_PAGE + 1))]
    infos = [
        RegionInfo("t", n + 2, start, end)
        for n, (start, end) in enumerate(zip(starts, [*starts[1:], b""], strict=True))
    ]
    visit = Visit(OperatedCluster(infos, 12))
    found, path = set[str](), "/tables/t"
    while path:
        page = visit(path)
        assert len(page) < BOUND_BYTES
        found |= set(re.findall(r"<code>([0-9a-f]{32})</code>", page))
        following = re.search(r'<a href="(\?page=\d+)">next</a>', page)
        path = f"/tables/t{following[1]}" if following else ""
    assert found == {info.encoded for info in infos}
    for odd in ("0", "-1", "x", "99999999999", ""):
        assert visit(f"/tables/t?page={odd}")


def test_the_strip_shows_size_load_and_owner() -> None:
    def look(n: int, server: str, load: float, size_bytes: int) -> RegionStatus:
        return RegionStatus(RegionInfo("t", n, bytes([n])), "OPEN", server=server, load=load, size_bytes=size_bytes)

    servers = [f"s{n}" for n in range(1, COLOURS + 2)]
    looks = [look(1, "s1", 10.0, 3000), look(2, "s9", 5.0, 1000), look(3, "", 0.0, 0)]
    strip = strip_of(looks, servers)
    assert sum(one.width for one in strip) == pytest.approx(100)
    assert strip[0].width == pytest.approx(3 * strip[1].width)
    assert 5 < strip[2].width < 10, "what is empty is seen"
    assert [one.colour for one in strip] == [1, 1, 0]
    assert [round(one.shade, 3) for one in strip] == [1.0, 0.625, 0.25]
    assert [one.label for one in strip] == ["s1", "s9", ""]
    assert [(one.server, one.regions) for one in legend_of(looks, servers)] == [("s1", 1), ("s9", 1), ("nobody", 1)]
    assert strip_of([], servers) == []


def test_a_server_that_is_busy_in_one_step_is_on_every_page(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = visit.cluster.facts
    busy = next(iter(visit.cluster.cluster.servers))
    monkeypatch.setattr(
        visit.cluster, "facts", lambda one: replace(facts(one), busy_ms=12_300) if one == busy else facts(one)
    )
    said = f"server {busy} is busy in one step for 12 s: its requests wait"
    assert said in visit.text("/servers")
    assert visit("/health").startswith(f"ok\n{said}"), "rows of others are served"
    assert f'columnar_server_busy_seconds{{server="{busy.name}"}} 12.3' in visit("/metrics")
