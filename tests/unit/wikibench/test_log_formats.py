"""Formats of access logs, each by lines in the form of its maker's manual, and each guessed from them."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikibench.targets.map_files import load_map
from wikibench.trace.line_formats import apache_format, nginx_format
from wikibench.trace.lines import MISSING, SAVE, VIEW, Request
from wikibench.trace.log_entries import MICROS, UNREADABLE, Entry, FormatError
from wikibench.trace.log_formats import AUTO, NAMES, format_of, guessed
from wikibench.trace.logs import Selection, Tally, requests_of

NGINX_TIMED = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent $request_time'
LOG_FORMAT = """log_format timed '$remote_addr "$http_user_agent" [$time_iso8601] '
                 '$host "$request_method $request_uri" $status rt=$request_time';"""

# format, the line, start (UTC), whole seconds, method, target, status, host
EXAMPLES = [
    (
        "common",
        '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
        ("2000-10-10T20:55:36", True, "GET", "/apache_pb.gif", 200, ""),
    ),
    (
        "combined",  # Apache's page on log files
        '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 '
        '"http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"',
        ("2000-10-10T20:55:36", True, "GET", "/apache_pb.gif", 200, ""),
    ),
    (
        "combined",  # Traefik's, whose quotes are not escaped
        '10.1.2.3 - - [10/Nov/2024:07:30:06 +0000] "GET /?x=md5("hi")&y HTTP/1.1" 404 19 "-" "-" 385 "-" "-" 0ms',
        ("2024-11-10T07:30:06", True, "GET", '/?x=md5("hi")&y', 404, ""),
    ),
    (
        "combined",
        '10.1.2.3 - frank [10/Oct/2000:13:55:36 -0700] "GET /a b HTTP/1.0" 404 2326 "http://www.example.com/" '
        '"Mozilla/4.08 [en] (Win98; I ;Nav)"',
        ("2000-10-10T20:55:36", True, "GET", "/a%20b", 404, ""),
    ),
    (
        "vhost",
        'wiki.example:80 10.1.2.3 - - [01/Jan/2024:00:00:00 +0530] "POST /save?x=\\x22\\xC5 HTTP/1.1" 302 0 "-" "-"',
        ("2023-12-31T18:30:00", True, "POST", "/save?x=%22%C5", 302, "wiki.example"),
    ),
    (
        f"nginx:{NGINX_TIMED}",
        '10.1.2.3 - - [01/Jan/2024:00:00:10 +0000] "HEAD / HTTP/2.0" 200 612 2.250',
        ("2024-01-01T00:00:07.750", True, "HEAD", "/", 200, ""),
    ),
    (
        f"nginx:{LOG_FORMAT}",
        '10.1.2.3 "curl/8 \\x22x\\x22" [2024-01-01T01:00:00+01:00] w.example "GET /wiki/A?b=c" 200 rt=0.000',
        ("2024-01-01T00:00:00", True, "GET", "/wiki/A?b=c", 200, "w.example"),
    ),
    (
        "nginx:$msec $request_method $scheme://$http_host$request_uri $status",
        "1704067200.123 GET https://w.example/wiki/A 200",
        ("2024-01-01T00:00:00.123", False, "GET", "/wiki/A", 200, "w.example"),
    ),
    (
        'apache:LogFormat "%v:%p %h %{usec}t %D \\"%r\\" %>s \\"%{User-Agent}i\\"" timed',
        'w.example:443 10.1.2.3 1704067200123456 5000 "GET /A HTTP/1.1" 200 "agent"',
        ("2024-01-01T00:00:00.123456", False, "GET", "/A", 200, "w.example"),
    ),
    (
        'apache:%h %l %u %t "%m %U%q" %>s',
        '10.1.2.3 - - [10/Oct/2000:13:55:36 -0700] "GET /A?b=c" 200',
        ("2000-10-10T20:55:36", True, "GET", "/A?b=c", 200, ""),
    ),
    (
        "caddy",  # Caddy's page on logging
        '{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":'
        '{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost",'
        '"uri":"/","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"Accept-Encoding":["gzip, deflate, br"]},'
        '"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},'
        '"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}',
        ("2022-03-09T21:30:01.523172", False, "GET", "/", 200, "localhost"),
    ),
    (
        "caddy",  # its console format
        '2025/10/23 19:21:04.824\tINFO\thttp.log.access.log0\thandled request\t{"request": {"remote_ip": "172.21.0.1", '
        '"method": "GET", "host": "localhost:5020", "uri": "/a"}, "duration": 0.024, "size": 0, "status": 404}',
        ("2025-10-23T19:21:04.800", False, "GET", "/a", 404, "localhost:5020"),
    ),
    (
        "caddy",
        '{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":'
        '{"remote_ip":"127.0.0.1","method":"GET","host":"localhost","uri":"/wiki/A b","headers":{"Cookie":["s=1"]}},'
        '"user_id":"","duration":1.5,"size":10900,"status":200}',
        ("2022-03-09T21:30:00.024102", False, "GET", "/wiki/A%20b", 200, "localhost"),
    ),
    (
        "traefik",
        '{"ClientAddr":"10.0.0.1:4711","DownstreamStatus":404,"Duration":1208700,"RequestHost":"w.example",'
        '"RequestMethod":"GET","RequestPath":"/x","StartUTC":"2024-01-01T00:00:00.123456789Z","time":"2024-01-01T00:00:01Z"}',
        ("2024-01-01T00:00:00.123456", False, "GET", "/x", 404, "w.example"),
    ),
    (
        "envoy",
        '{"authority":"w.example","start_time":"2024-01-01T00:00:00.123Z","method":"GET","path":"/x",'
        '"response_code":200,"duration":5,"user_agent":"curl"}',
        ("2024-01-01T00:00:00.123", False, "GET", "/x", 200, "w.example"),
    ),
    (
        "envoy",  # Envoy's page on its default format
        '[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" '
        '"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"',
        ("2016-04-15T20:17:00.310", False, "POST", "/api/v1/locations", 204, "locations"),
    ),
    (
        "envoy",  # Istio's page on the logs of its sidecars
        '[2020-11-25T20:54:13.131Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 4 4 "-" '
        '"curl/7.73.0-DEV" "84961386-6d84-929d-98bd-c5aee93b5c88" "httpbin:8000" "10.44.1.27:80" '
        "outbound|8000||httpbin.foo.svc.cluster.local 10.44.1.23:37652 10.0.45.184:8000 10.44.1.23:46520 - default",
        ("2020-11-25T20:54:13.131", False, "GET", "/status/418", 418, "httpbin:8000"),
    ),
    (
        "combined",  # of Traefik's own tests; its quoted fields may hold anything
        '192.0.2.7 - TestUser [13/Apr/2016:07:14:19 -0700] "POST /testpath HTTP/1.1" 123 12 "testReferer" '
        '"testUserAgent" 1 "testRouter" "http://127.0.0.1/testService" 1ms',
        ("2016-04-13T14:14:19", True, "POST", "/testpath", 123, ""),
    ),
    (
        "json:time=at,request=line,status=code,duration=took:ms,end",
        '{"at":"01/Jan/2024:00:00:10 +0000","line":"GET /A?b=c HTTP/1.1","code":"200","took":2250}',
        ("2024-01-01T00:00:07.750", True, "GET", "/A?b=c", 200, ""),
    ),
    (
        "alb",
        "http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 "
        '0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - -',
        ("2018-07-02T22:23:00.185641", False, "GET", "http://www.example.com:80/", 200, ""),
    ),
    (
        "haproxy",
        "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 "
        '10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"',
        ("2009-02-06T12:14:14.655", False, "GET", "/index.html", 200, ""),
    ),
]


def entry_of(time: str, is_whole: bool, method: str, target: str, status: int, host: str) -> Entry:
    moment = datetime.fromisoformat(time).replace(tzinfo=UTC)
    at = int(moment.replace(microsecond=0).timestamp()) * MICROS + moment.microsecond
    return Entry(at, is_whole, method, target, status, host)


def without_before(entry: Entry | str) -> Entry:
    assert isinstance(entry, Entry), entry
    return Entry(entry.time_us, entry.is_whole, entry.method, entry.target, entry.status, entry.host)


@pytest.mark.parametrize(("name", "line", "wanted"), EXAMPLES, ids=[name[:20] for name, _, _ in EXAMPLES])
def test_each_format_reads_its_makers_line(name: str, line: str, wanted: tuple[str, bool, str, str, int, str]) -> None:
    assert without_before(format_of(name).parse(line + "\n")) == entry_of(*wanted)


@pytest.mark.parametrize(
    ("name", "line", "wanted"),
    [one for one in EXAMPLES if one[0] in AUTO],
    ids=[name for name, _, _ in EXAMPLES if name in AUTO],
)
def test_each_named_format_is_guessed(name: str, line: str, wanted: tuple[str, bool, str, str, int, str]) -> None:
    found = guessed([line + "\n", "\n"])
    assert found is not None
    assert (found[0].name, found[1]) == (name, 1)
    assert without_before(found[0].parse(line)) == entry_of(*wanted)


W3C = """#Software: Microsoft Internet Information Services 10.0
#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status time-taken
2024-01-01 00:00:10 10.0.0.1 GET /wiki/A b=c 80 - 10.1.2.3 Mozilla/5.0 200 2250
2024-01-01 00:00:10 10.0.0.1 GET /wiki/B - 80 - 10.1.2.3 Mozilla/5.0 404 0
"""


def test_the_fields_of_iis_are_those_that_its_directive_names() -> None:
    found = guessed(W3C.splitlines(keepends=True))
    assert found is not None
    assert found[0].name == "w3c"
    entries = [one for one in map(found[0].parse, W3C.splitlines()) if isinstance(one, Entry)]
    assert [(one.target, one.status, one.before_us) for one in entries] == [
        ("/wiki/A?b=c", 200, 2_250_000),
        ("/wiki/B", 404, 0),
    ]


@pytest.mark.parametrize(
    ("text", "times"),
    [  # W3C's working draft, and Microsoft's page on IIS: the day is in a directive
        (
            "#Version: 1.0\n#Date: 12-Jan-1996 00:00:00\n#Fields: time cs-method cs-uri\n"
            "00:34:23 GET /foo/bar.html\n12:21:16 GET /foo/bar.html\n",
            ["1996-01-12T00:34:23", "1996-01-12T12:21:16"],
        ),
        (
            "#Software: Internet Information Services 6.0\n#Version: 1.0\n#Date: 2001-05-02 17:42:15\n"
            "#Fields: time c-ip cs-method cs-uri-stem sc-status cs-version\n"
            "17:42:15 172.16.255.255 GET /default.htm 200 HTTP/1.0\n",
            ["2001-05-02T17:42:15"],
        ),
    ],
)
def test_w3c_lines_may_have_their_day_in_a_directive(text: str, times: list[str]) -> None:
    found = guessed(text.splitlines(keepends=True))
    assert found is not None
    assert found[0].name == "w3c"
    fresh = format_of("w3c")
    entries = [one for one in map(fresh.parse, text.splitlines()) if isinstance(one, Entry)]
    assert [one.time_us for one in entries] == [entry_of(time, True, "GET", "/", 200, "").time_us for time in times]


def test_a_connection_that_became_a_web_socket_is_no_request() -> None:
    line = '10.1.2.3 - - [11/Nov/2024:11:14:33 +0000] "GET /live/ws HTTP/1.1" 0 0 "-" "-" 465 "a@docker" "http://x" 3ms'
    assert format_of("combined").parse(line) == "no request in the line"


def test_quotes_in_a_request_take_no_time() -> None:
    line = '10.1.2.3 - - [11/Nov/2024:11:14:33 +0000] "GET /' + '\\"' * 40_000
    assert format_of("combined").parse(line) == UNREADABLE


def test_a_visitor_is_the_address_of_each_format() -> None:
    for name, line, _ in EXAMPLES:
        made, seen = format_of(name), list[str]()
        has_address = made.number_visitors(lambda address, seen=seen: seen.append(address) or "7")  # type: ignore[misc]
        entry = made.parse(line)
        assert isinstance(entry, Entry)
        assert (entry.visitor == "7") == has_address
        assert len(seen) == has_address
        assert all(re.match(r"\d+\.\d+\.\d+\.\d+|\Z|None|-$", address) for address in seen), (name, seen)
    assert without_before(format_of("common").parse(EXAMPLES[0][1])).visitor == ""


def test_unknown_json_is_read_by_the_usual_names_of_its_fields() -> None:
    visitor = '"host":"192.0.2.1"}'  # nginx's $remote_addr under a name that looks like the site's
    line = (
        '{"@timestamp":"2024-01-01T00:00:00.5Z","verb":"GET","url":"/A","http_status":"304","http_host":"w",' + visitor
    )
    found = guessed([line])
    assert found is not None
    assert without_before(found[0].parse(line)) == entry_of("2024-01-01T00:00:00.5", False, "GET", "/A", 304, "w")
    assert guessed(['{"message":"started","level":"info"}']) is None


@pytest.mark.parametrize(
    ("line", "name", "before_us"),
    [
        (  # the log_format of nginx's own page on JSON logs
            '{"time_iso8601":"2024-01-01T00:00:10+00:00","request":"GET /A HTTP/1.1","status":"200",'
            '"request_time":"1.500"}',
            "json:time=time_iso8601,status=status,duration=request_time,request=request,end",
            1_500_000,
        ),
        (
            '{"time":"2024-01-01T00:00:10Z","request":{"method":"GET","uri":"/A"},"status":200,"duration":1.5}',
            "json:time=time,method=request.method,target=request.uri,status=status,duration=duration",
            0,
        ),
        (
            '{"ts":"2024-01-01T00:00:10Z","method":"GET","uri":"/A","response.status":200}',
            "json:time=ts,method=method,target=uri,status=response.status",
            0,
        ),
    ],
)
def test_json_that_was_guessed_has_a_name_that_makes_the_same_format(line: str, name: str, before_us: int) -> None:
    """nginx logs the end of a request: a guess that took it for the start put requests behind those they had caused."""
    found = guessed([line])
    assert found is not None
    assert found[0].name == name
    entry, again = found[0].parse(line), format_of(name).parse(line)
    assert isinstance(entry, Entry)
    assert entry == again
    assert (entry.before_us, entry.status) == (before_us, 200)
    assert entry.time_us == entry_of("2024-01-01T00:00:10", True, "GET", "/A", 200, "").time_us - before_us


@pytest.mark.parametrize(
    "text", ["hello", "nginx", "nginx:$status $request", "apache:%h %r", "json:time=ts", "json:x=y"]
)
def test_a_format_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        format_of(text)


def test_a_time_in_words_of_a_configuration_is_refused_with_what_can_be_read() -> None:
    with pytest.raises(FormatError, match=r"%\{usec\}t can be"):
        apache_format('%h %{%Y-%m}t "%r"')


@given(st.text(max_size=200), st.sampled_from([*NAMES, f"nginx:{NGINX_TIMED}"]))
@settings(max_examples=300, deadline=None)
def test_any_line_gives_an_entry_or_a_reason(line: str, name: str) -> None:
    found = format_of(name).parse(line)
    assert isinstance(found, Entry | str)


# -- selection, and whole seconds


def line_of(target: str, status: int = 200, method: str = "GET", second: int = 10) -> str:
    request = f'"{method} {target} HTTP/1.1"'
    return f'1.2.3.4 - bob [01/Jan/2024:00:00:{second:02d} +0000] {request} {status} 5 "ref" "agent"\n'


def read(lines: list[str], *, seed: int | None = None, **selection: object) -> tuple[list[Request], Tally]:
    tally = Tally()
    rng = None if seed is None else random.Random(seed)
    found = list(requests_of(lines, format_of("combined"), Selection(**selection), tally, rng))  # type: ignore[arg-type]
    tally.check()
    return found, tally


def test_what_is_no_page_view_is_counted_under_its_reason() -> None:
    lines = [
        line_of("/A"),
        line_of("/A", 404),
        line_of("/A", 304),
        line_of("/A", 302),
        line_of("/A", 403),
        line_of("/x.css?v=1"),
        line_of("/A", method="PUT"),
        line_of("/A?action=submit", 302, "POST"),
        line_of("*", method="OPTIONS"),
        "garbage\n",
        "\n",
    ]
    found, tally = read(lines)
    assert [(one.url, one.flag) for one in found] == [("/A", VIEW), ("/A", MISSING), ("/A", VIEW)]
    assert (tally.lines, tally.kept, tally.unreadable) == (11, 3, 1)
    assert tally.first_bad == [(10, "garbage")]
    more, _ = read(lines, saves=re.compile("action=submit"), keep=frozenset({"static", "redirects", "refused"}))
    assert [one.flag for one in more] == [VIEW, MISSING, VIEW, VIEW, VIEW, VIEW, SAVE]
    assert [one.url for one in read(lines, views=re.compile("css"), keep=frozenset({"static"}))[0]] == ["/x.css?v=1"]


def test_a_map_says_what_is_a_page() -> None:
    lines = [
        line_of("/index.php?title=a_b"),
        line_of("/wiki/A_b?x=1", 404),
        line_of("http://w.example/wiki/A%20b"),
        line_of("/index.php?title=A_b&action=submit", 302, "POST"),
        line_of("/index.php?title=A_b&action=history"),
        line_of("/wiki/A_b", 301),
        line_of("/skins/x.css"),
        line_of("/wiki/A_b", 403),
    ]
    found, tally = read(lines, site=load_map("mediawiki"))
    assert [(one.url, one.flag) for one in found] == [("/A_b", VIEW), ("/A_b", MISSING), ("/A_b", VIEW), ("/A_b", SAVE)]
    assert tally.dropped.total() == 4
    assert len(tally.dropped) == 4


def test_requests_of_a_second_come_at_moments_of_it_in_their_order() -> None:
    lines = [line_of(f"/{n}", second=10) for n in range(600)] + [line_of("/last", second=11)]
    found, tally = read(lines, seed=1)
    times = [one.time_us for one in found]
    assert times == sorted(times)
    assert [one.url for one in found] == [f"/{n}" for n in range(600)] + ["/last"]
    second = times[0] // MICROS
    assert {at // MICROS for at in times[:-1]} == {second}
    assert times[-1] // MICROS == second + 1
    tenths = [sum(at % MICROS // 100_000 == tenth for at in times[:-1]) for tenth in range(10)]
    assert min(tenths) > 30
    assert tally.whole_seconds == 601
    assert found == read(lines, seed=1)[0] != read(lines, seed=2)[0]
    assert {one.time_us % MICROS for one in read(lines)[0]} == {0}, "as logged"


def test_lines_of_a_second_keep_their_order_if_others_stand_between_them() -> None:
    """A server notes the begin of a request and writes its line at the end."""
    lines = [line_of(f"/{n}", second=10 + n % 3) for n in range(90)] + [line_of("/far", second=59)]
    found, tally = read([*lines, line_of("/late", second=10)], seed=1)
    assert tally.kept == len(found) == 92
    in_time = [one.url for one in sorted(found, key=lambda one: one.time_us)]
    for second in range(3):
        of_second = [f"/{n}" for n in range(second, 90, 3)] + ["/late"] * (second == 0)
        assert [url for url in in_time if url in of_second] == of_second


def test_a_second_with_many_lines_is_spread_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikibench.trace.logs.SECOND_LINES", 10)
    found, _ = read([line_of(f"/{n}", second=n // 25) for n in range(50)], seed=1)
    assert sorted(one.url for one in found) == sorted(f"/{n}" for n in range(50))
    assert all(one.time_us // MICROS % 60 == int(one.url[1:]) // 25 for one in found)
    lines = iter([line_of(f"/{n}", second=1) for n in range(50)])
    next(requests_of(lines, format_of("combined"), Selection(), Tally(), random.Random(1)))
    assert len(list(lines)) == 40, "no more lines wait than the bound"


def test_milliseconds_are_no_whole_seconds_though_they_end_in_000() -> None:
    lines = [f'{{"t":{1_700_000_000_000 + n * 250},"m":"GET","u":"/{n}"}}\n' for n in range(8)]
    tally = Tally()
    found = list(requests_of(lines, format_of("json:time=t,method=m,target=u"), Selection(), tally, random.Random(1)))
    assert [one.time_us for one in found] == [1_700_000_000_000_000 + n * 250_000 for n in range(8)]
    assert tally.whole_seconds == 0


@given(st.lists(st.sampled_from(["CANARY-user", "192.0.2.77", "CANARY-agent", "CANARY-referer"]), min_size=1))
@settings(max_examples=50)
def test_nothing_of_a_visitor_is_in_a_trace(canaries: list[str]) -> None:
    lines = [
        f'192.0.2.77 - {canary} [01/Jan/2024:00:00:10 +0000] "GET /{n} HTTP/1.1" 200 5 "{canary}" "CANARY-agent"\n'
        for n, canary in enumerate(canaries)
    ]
    text = repr(read(lines, seed=1)[0])
    assert "CANARY" not in text
    assert "192.0.2" not in text


def test_an_unreadable_line_is_one() -> None:
    assert nginx_format(NGINX_TIMED).parse("x") == UNREADABLE
    assert format_of("w3c").parse("2024-01-01 00:00:10 GET /") == UNREADABLE
    assert format_of("caddy").parse("[1, 2]") == UNREADABLE
