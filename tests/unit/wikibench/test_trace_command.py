"""``wikibench trace``: from logs to a trace, to a sample, and what is in them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.proofs.planner import MEAN_LOAD, loads_of
from wikibench.cli import main
from wikibench.trace.lines import parse


def command(*words: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], input=text)


def line_of(second: int, target: str, status: int = 200, method: str = "GET") -> str:
    return f'192.0.2.1 - - [01/Jan/2024:00:00:{second:02d} +0000] "{method} {target} HTTP/1.1" {status} 5 "-" "-"\n'


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Two logs, the later one first, the earlier one packed."""
    later, earlier = tmp_path / "access.log", tmp_path / "access.log.1.gz"
    later.write_text("".join(line_of(30 + n // 10, f"/wiki/Page_{n % 7}") for n in range(200)) + line_of(59, "/x.css"))
    earlier.write_bytes(gzip.compress("".join(line_of(n // 10, "/wiki/Hot") for n in range(200)).encode()))
    return [later, earlier]


def test_synth_is_a_command_of_traces_too(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("One\nTwo\n")
    for number, words in enumerate((["synth"], ["trace", "synth"])):
        made = command(*words, "--titles", names, "--out", tmp_path / str(number), "--requests", 20, "--rate", 10)
        assert made.exit_code == 0, made.output
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes() != b""


def test_from_logs_to_a_sample(logs: list[Path], tmp_path: Path) -> None:
    out, small = tmp_path / "day.trace.gz", tmp_path / "small.trace"
    made = command("trace", "read", *logs, "--out", out)
    assert made.exit_code == 0, made.output
    said = made.output.replace("\n", " ")
    assert "format: combined, which reads 100 of the first 100 lines" in said
    assert "400 requests over 49." in said
    assert "from 401 lines, 400 times in whole seconds, spread" in said
    assert "dropped: 1 a file that pages are made of (--keep static)" in said
    requests = list(parse(gzip.decompress(out.read_bytes()).decode().splitlines()))
    times = [one.time_us for one in requests]
    assert times == sorted(times)
    assert requests[0].url == "/wiki/Hot", "the earlier log comes first"
    again = tmp_path / "again.trace.gz"
    command("trace", "read", *logs, "--out", again)
    assert again.read_bytes() == out.read_bytes(), "the same seed gives the same trace"
    counted = tmp_path / "counts"
    told = command("trace", "info", out, "--counts", counted)
    assert told.exit_code == 0, told.output
    rows = [(int(count), name) for count, _, name in (line.partition(" ") for line in counted.read_text().splitlines())]
    assert (sum(count for count, _ in rows), len(rows), rows[0][1]) == (400, 8, "wiki/Hot")
    assert rows == sorted(rows, key=lambda row: (-row[0], row[1]))
    loads = loads_of(counted.read_text().splitlines(), 4)
    assert (len(loads), round(sum(loads), 6)) == (4, 4 * MEAN_LOAD)
    for text in ("400 (400 views)", "8; the first 8 have 100.0%", "wiki/Hot", "0 earlier than the line before"):
        assert text in told.output
    cut = command("trace", "sample", out, "--pages", "50%", "--out", small)
    assert cut.exit_code == 0, cut.output
    assert "thinned because" in cut.output
    kept = list(parse(small.read_text().splitlines()))
    assert 120 <= len(kept) <= 280
    assert {(one.time_us, one.url) for one in kept} <= {(one.time_us, one.url) for one in requests}


def test_a_share_of_the_requests(logs: list[Path], tmp_path: Path) -> None:
    out, thin = tmp_path / "t", tmp_path / "thin"
    command("trace", "read", *logs, "--out", out, "--within-second", "as-logged")
    assert command("trace", "sample", out, "--requests", "25%", "--out", thin).exit_code == 0
    assert 60 <= len(thin.read_text().splitlines()) <= 140


def test_a_format_of_a_configuration_and_edits(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "t"
    log.write_text("1704067200.500 POST /index.php?title=A&action=submit 302\n1704067201.500 GET /A 200\n")
    words = ("trace", "read", log, "--out", out, "--format", "nginx:$msec $request_method $request_uri $status")
    assert command(*words, "--save", "action=submit").exit_code == 0
    assert out.read_text() == (
        "1704067200.500 /index.php?title=A&action=submit save;s=302\n1704067201.500 /A -;s=200\n"
    )
    assert command(*words, "--save", "action=submit", "--plain").exit_code == 0
    assert out.read_text() == ("1704067200.500 /index.php?title=A&action=submit save\n1704067201.500 /A -\n")


def test_mistakes_are_told_in_a_line(logs: list[Path], tmp_path: Path) -> None:
    odd, static, empty = tmp_path / "odd", tmp_path / "static", tmp_path / "empty"
    odd.write_text("hello\n" * 5)
    static.write_text(line_of(1, "/a.css"))
    empty.write_text("")
    out = tmp_path / "out"
    for words, why in (
        (("read", odd, "--out", out), "take the log_format or LogFormat line"),
        (("read", empty, "--out", out), "is empty"),
        (("read", odd, "--out", out, "--format", "combined"), "5 of 5 lines are not of the format combined"),
        (("read", static, "--out", out), "no page view in"),
        (("read", odd, "--out", out, "--format", "nginx:$status"), "needs a time and a request"),
        (("read", "-", "--out", out), "standard input cannot be looked at twice"),
        (("read", odd, "--out", out, "--view", "("), "is no regular expression"),
        (("read", odd, "--out", out, "--keep", "cats"), "is not a list of static, redirects, refused"),
        (("sample", odd, "--out", out), "either --pages, --requests or --visitors"),
        (("sample", odd, "--out", out, "--pages", "10%"), "trace line 1"),
        (("info", logs[0]), "an access log (combined), not of a trace"),
    ):
        result = command("trace", *words)
        assert result.exit_code == 2, (words, result.output, result.exception)
        assert why in result.output.replace("\n", " "), (words, result.output)
    assert not out.exists(), "nothing was written"


def test_a_guess_of_json_says_which_fields_it_reads_and_what_its_time_is(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "t"
    for fields, said, at in (
        (
            '"request":"GET /A HTTP/1.1","request_time":"0.250"',
            "duration=request_time,request=request,end, which",
            "0.750",
        ),
        (
            '"method":"GET","uri":"/A"',
            "json:time=ts,method=method,target=uri, which reads 1 of the first 1 lines;",
            "1.000",
        ),
    ):
        log.write_text(f'{{"ts":1704067201.0,{fields}}}\n')
        made = command("trace", "read", log, "--out", out)
        assert made.exit_code == 0, made.output
        told = made.output.replace("\n", " ")
        assert said in told
        assert ("if it is the end, give this --format with ,end" in told) == (at == "1.000")
        assert out.read_text().startswith(f"170406720{at} /A" if at == "1.000" else "1704067200.750 /A")


def test_dropped_lines_are_written_down_with_their_numbers_and_reasons(logs: list[Path], tmp_path: Path) -> None:
    out, dropped = tmp_path / "t", tmp_path / "dropped"
    with logs[0].open("a", encoding="utf-8") as log:
        log.write(line_of(59, "/B", method="PUT") + "hello \xa0\t.\n")
    made = command("trace", "read", *logs, "--out", out, "--dropped", dropped)
    assert made.exit_code == 0, made.output
    reasons = (
        "a file that pages are made of (--keep static)",
        "another method than GET, HEAD and POST",
        "unreadable line",
    )
    lines = [line_of(59, "/x.css"), line_of(59, "/B", method="PUT"), "hello \xa0\t.\n"]
    wanted = [f"{201 + n}\t{reason}\t{line}" for n, (reason, line) in enumerate(zip(reasons, lines, strict=True))]
    assert dropped.read_text("utf-8") == "".join(wanted)
    assert "the first unreadable line" not in made.output, "the file has it"
    before = logs[0].read_bytes()
    for where in (logs[0], out):
        refused = command("trace", "read", *logs, "--out", out, "--dropped", where)
        assert (refused.exit_code, "would be written over: give a file of its own" in refused.output) == (2, True)
    assert logs[0].read_bytes() == before
    refused = command("trace", "read", out, "--out", tmp_path / "again", "--dropped", dropped)
    assert (refused.exit_code, "of which no line is left out" in refused.output) == (2, True)
    only = tmp_path / "only"
    only.write_text(line_of(1, "/a.css"))
    none = command("trace", "read", only, "--out", tmp_path / "none", "--dropped", f"{dropped}.gz")
    assert none.exit_code == 2
    assert gzip.decompress(Path(f"{dropped}.gz").read_bytes()).startswith(b"1\ta file that"), "why there is none"


def test_a_wiki_that_names_its_pages_in_queries_is_told_to_need_a_map(tmp_path: Path) -> None:
    """Such a wiki was read as one page without a word, and a sample by pages thinned all of it."""
    log, out, small = tmp_path / "log", tmp_path / "t", tmp_path / "small"
    target = "/doku.php?id=page_{}"
    log.write_text("".join(line_of(n // 10, target.format(n % 50) if n % 3 else f"/lib/{n}") for n in range(300)))
    warned = "of one path with many queries, doku.php: they count as one page"
    for words in (("read", log, "--out", out), ("info", out), ("sample", out, "--pages", "50%", "--out", small)):
        done = command("trace", *words)
        assert done.exit_code == 0, done.output
        assert f"67% of the requests are {warned}" in done.output, words
    mapped = command("trace", "read", log, "--map", "dokuwiki", "--out", out)
    assert (mapped.exit_code, warned in mapped.output) == (0, False), mapped.output
    for text in (
        "".join(line_of(n // 10, f"/w/index.php?title=Page_{n % 50}") for n in range(300)),  # is understood
        "".join(line_of(n // 10, "/Hot?x=1" if n % 3 else f"/Page_{n}") for n in range(300)),  # is a page
        "".join(line_of(n // 10, target.format(n) if n % 3 == 0 else f"/Page_{n}") for n in range(300)),  # is the less
    ):
        log.write_text(text)
        done = command("trace", "read", log, "--out", out)
        assert (done.exit_code, "many queries" in done.output) == (0, False), done.output


def test_a_log_in_place_of_a_trace_is_told_with_what_to_do(logs: list[Path]) -> None:
    result = command("replay", logs[0], "--target", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert "wikibench trace read" in result.output.replace("\n", " ")


def test_standard_input_is_read_if_its_format_is_said(tmp_path: Path) -> None:
    out = tmp_path / "t"
    result = command("trace", "read", "-", "--format", "common", "--out", out, text=line_of(1, "/A"))
    assert result.exit_code == 0, result.output
    assert out.read_text().endswith(" /A -;s=200\n")


def test_info_reads_standard_input_once_and_lists_hours() -> None:
    times = [1_704_100_000 + 400 * n for n in range(40)]  # 2024-01-01 09:06:40 and four hours more
    lines = "".join(f"{time} /Page{n % 3} -\n" for n, time in enumerate(times))
    result = command("trace", "info", "-", text=lines)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.replace("│", " ").split())
    assert all(words in said for words in ("40 (40 views)", "2024-01-01 10:00 9,", "0.0025 in the busiest hour")), said
    short = command("trace", "info", "-", text="".join(lines.splitlines(keepends=True)[:4]))
    said = " ".join(short.output.replace("│", " ").split())
    assert "0.003333 per second in the mean, 0.003333 in the busiest" in said, "no whole hour"
