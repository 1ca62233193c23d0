"""Folders of traces: sorted on disk, in parts, with a manifest; what is left of half a folder is no trace."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.golden import hold_to
from wikibench.errors import PlanError, TraceFileError
from wikibench.pacing import shape_of
from wikibench.trace import folder as folders
from wikibench.trace.folder import FolderTrace, FolderWriter
from wikibench.trace.lines import MICROS, Request, parse_line
from wikibench.trace.manifest import MINUTE_US, Manifest, Minute, Part, Window, from_json, to_json
from wikibench.trace.sorting import line_of, lines_in_time_order
from wikibench.trace.source import Trace, window_of

TIMES = st.lists(st.one_of(st.integers(0, 50), st.integers(0, 40 * MINUTE_US), st.integers(0, 10**12)), max_size=80)


@given(TIMES, st.integers(1, 9), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_buckets_on_disk_are_the_order_of_memory(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], most: int, buckets: int
) -> None:
    folder = tmp_path_factory.mktemp("sorting")
    requests = [Request(time, f"/{n}\udcff", "-", n, "s=200") for n, time in enumerate(times)]
    found = list(lines_in_time_order(requests, folder / "buckets", most=most, buckets=buckets))
    assert [parse_line(line.text) for line in found] == sorted(requests, key=lambda request: request.time_us)
    assert [line.time_us for line in found] == sorted(times)
    assert [path for path in folder.rglob("*") if path.is_file()] == [], "what was read has been removed"


def some_requests(count: int, gap_us: int = 7 * MICROS) -> list[Request]:
    return [Request(600 * MICROS + n * gap_us, f"/p{n % 5}", "save" if n % 10 == 9 else "-") for n in range(count)]


def written(path: Path, requests: list[Request], part: int = 10) -> FolderTrace:
    with FolderWriter(path, part_requests=part) as folder:
        assert folder.write_lines(map(line_of, requests)) == len(requests)
        folder.note_history({"a redirect": 3}, ("read: of a log",))
    return FolderTrace.opened(path)


@given(st.lists(st.integers(0, 10 * MINUTE_US), min_size=1, max_size=60), st.integers(1, 20), st.data())
@settings(max_examples=60, deadline=None)
def test_the_manifest_says_what_reading_says(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], part: int, data: st.DataObject
) -> None:
    requests = [Request(time, "/a") for time in sorted(times)]
    trace = written(tmp_path_factory.mktemp("folder") / "day", requests, part)
    assert list(trace.requests_in()) == requests
    minute = st.one_of(st.none(), st.integers(0, 11).map(lambda n: n * MINUTE_US), st.integers(0, 11 * MINUTE_US))
    window = Window(data.draw(minute), data.draw(minute))
    wanted = [one for one in requests if window.has(one.time_us)]
    assert list(trace.requests_in(window)) == wanted
    skip = data.draw(st.integers(0, 70))
    assert list(trace.requests_in(window, skip)) == wanted[skip:]
    gap = data.draw(st.sampled_from([None, MINUTE_US, 3 * MINUTE_US, MICROS]))
    said = trace.manifest.size_and_span(window, gap)
    shape = shape_of(wanted, gap)
    if said is not None:
        assert said == (shape.requests, shape.span_us)
    else:
        is_whole = all(end is None or end % MINUTE_US == 0 for end in (window.begin_us, window.end_us))
        assert gap == MICROS or not is_whole


def test_a_window_opens_only_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = written(tmp_path / "day", some_requests(100))
    opened: list[str] = []
    really = folders.gzip.open

    def noting(path: Path, *more: str, **others: str) -> object:
        opened.append(path.name)
        return really(path, *more, **others)

    monkeypatch.setattr(folders.gzip, "open", noting)
    begin = trace.manifest.parts[4].first_us
    assert len(list(trace.requests_in(Window(begin, begin + 70 * MICROS)))) == 10
    assert opened == ["part-00004.gz"]
    opened.clear()
    whole = Trace([str(tmp_path / "day")]).open_all()
    assert whole.size_and_span() == (100, 99 * 7 * MICROS)
    assert next(iter(whole.read(95))).time_us == 600 * MICROS + 95 * 7 * MICROS
    assert opened == ["part-00000.gz", "part-00009.gz"] or opened == ["part-00009.gz"]


def test_edits_are_sought_only_in_parts_that_have_some(tmp_path: Path) -> None:
    requests = [*(Request(n, "/a") for n in range(30)), Request(40, "/b", "save")]
    written(tmp_path / "day", requests)
    (tmp_path / "day" / "part-00000.gz").write_bytes(b"x" * (tmp_path / "day" / "part-00000.gz").stat().st_size)
    trace = Trace([str(tmp_path / "day")]).open_all()
    assert [one.url for one in trace.saves()] == ["/b"]
    with pytest.raises(TraceFileError, match=r"part-00000\.gz: the part is damaged"):
        list(trace.read())


def test_the_same_requests_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        written(tmp_path / name, some_requests(25))
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert sorted(one) == ["manifest.json", "part-00000.gz", "part-00001.gz", "part-00002.gz"]


class _Crash(BaseException):
    """The end of the process, as far as the code can see it."""


def dying(requests: list[Request]) -> Iterator[Request]:
    yield from requests
    raise _Crash


def test_half_a_folder_is_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders.shutil, "rmtree", lambda *_, **__: None)  # a killed process cleans nothing up
    with pytest.raises(_Crash), FolderWriter(tmp_path / "day", part_requests=10) as folder:
        folder.write_lines(map(line_of, dying(some_requests(25))))
    assert not (tmp_path / "day").exists()
    with pytest.raises(TraceFileError, match=r"without manifest\.json"):
        FolderTrace.opened(tmp_path / ".day.making")
    monkeypatch.undo()
    assert written(tmp_path / "day", some_requests(25)).manifest.count == 25, "the next one takes its place"
    assert [path.name for path in tmp_path.iterdir()] == ["day"]


def test_a_folder_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    trace = written(tmp_path / "day", some_requests(25))
    with pytest.raises(TraceFileError, match="it is there already"):
        written(tmp_path / "day", some_requests(5))
    part = trace.path / "part-00001.gz"
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(TraceFileError, match="where the manifest says"):
        FolderTrace.opened(trace.path)
    part.unlink()
    with pytest.raises(TraceFileError, match="is missing"):
        FolderTrace.opened(trace.path)


def test_files_that_are_too_many_for_memory_are_sorted_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikibench.trace.source.PART_REQUESTS", 10)
    requests = some_requests(40)
    for name, part in (("a", requests[20:][::-1]), ("b", requests[:20])):
        (tmp_path / name).write_text("".join(f"{line_of(one).text}\n" for one in part))
    trace = Trace([str(tmp_path / "a"), str(tmp_path / "b")]).open_all()
    assert trace.folder is not None
    assert list(trace.read()) == requests
    late = Trace([str(tmp_path / "a"), str(tmp_path / "b")], sort_window=5).open_all()
    assert len(list(late.read())) == 40
    assert late.late_lines > 20
    made = trace.folder.path.parent
    assert made.is_dir()
    del trace
    gc.collect()
    assert not made.exists(), "nothing is left on disk"


def test_moments() -> None:
    first = 1_704_096_780 * MICROS  # 2024-01-01T08:13:00
    at = 1_704_067_200 * MICROS
    hour = 3_600 * MICROS
    assert window_of("08:00", "10:00", first) == Window(at + 8 * hour, at + 10 * hour)
    assert window_of("23:00", "01:30", first) == Window(at + 23 * hour, at + 25 * hour + hour // 2)
    assert window_of("+1h", "+90m", first) == Window(first + hour, first + hour + hour // 2)
    assert window_of("2024-01-01T09:00", "2024-01-01T09:00:00.5Z", first) == Window(
        at + 9 * hour, at + 9 * hour + 500_000
    )
    assert window_of(None, "1704096781.5", first) == Window(None, 1_704_096_781_500_000)
    for begin, end in (("noon", None), ("25:00", None), (None, "2024-13-01"), ("+2h", "+1h"), (None, "2023-01-01")):
        with pytest.raises(PlanError, match=r"--from|--to"):
            window_of(begin, end, first)


MANIFEST = Manifest(
    (
        Part(
            "part-00000.gz",
            812,
            1_190_146_243_326_000,
            1_190_146_320_000_001,
            {"view": 2, "save": 1, "missing": 0},
            (
                Minute(19_835_770, 2, 1_190_146_243_326_000, 1_190_146_250_000_000),
                Minute(19_835_772, 1, 1_190_146_320_000_001, 1_190_146_320_000_001),
            ),
        ),
    ),
    {"a redirect": 7, "unreadable line": 1},
    ("read: 11 lines of 1 logs, format combined, spread, seed 1", "sample: 10.0000% of the pages, seed 1"),
)


def test_golden_bytes() -> None:
    MANIFEST.check()
    text = to_json(MANIFEST)
    assert from_json(text, "x") == MANIFEST
    hold_to("trace-manifest.txt", {"manifest": text.encode(), "empty": to_json(Manifest()).encode()})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("wikibench-trace-1", "wikibench-trace-2"),
        ('"part-00000.gz"', '"../part"'),
        ("[19835770, 2,", "[19835770, 3,"),
        ('"bytes"', '"size"'),
        ("{", "["),
    ],
)
def test_a_manifest_that_is_none_is_refused_by_its_path(old: str, new: str) -> None:
    text = to_json(MANIFEST)
    assert old in text
    with pytest.raises(TraceFileError, match=r"day/manifest\.json"):
        from_json(text.replace(old, new), "day/manifest.json")
