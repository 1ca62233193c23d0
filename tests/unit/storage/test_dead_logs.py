"""Sealed logs: what they name, what they hold, and what nobody reads in them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from columnar.errors import DamagedData, HostError
from columnar.storage.data_folder import SERVER_LOG
from columnar.storage.dead_logs import DeadLog, DeadLogs, Sealed, measure, sealed_at
from columnar.storage.ownership import THIS_RUN, LogPart, Ownership
from columnar.storage.recovery import lacking
from columnar.storage.rocks import RocksEngine
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.server_log import BEFORE_EPOCHS, Framing, Written, head, mark
from columnar.storage.server_log_files import ServerLog, begin_run
from tests.support.golden import golden
from tests.support.logged_stores import SPACES, Started

frame = Framing().frame


def put(region: str, epoch: int, number: int, previous: int = 0, value: bytes = b"v") -> Written:
    return region, epoch, number, previous, [("a", b"k%d" % number, value, None)]


def written(folder: Path, *rounds: list[Written]) -> ServerLog:
    """A log, closed by nobody."""
    log, _ = begin_run(str(folder))
    folder.mkdir(exist_ok=True)
    log.prepare()
    for records in rounds:
        log.append(records)
    return log


def numbers(log: DeadLog, region: str, *epochs: int) -> list[int]:
    return [record.number for _, record in log.records(region, frozenset(epochs)).found]


def dead(folder: Path) -> DeadLog:
    return DeadLog(str(folder), measure(str(folder)))


def test_a_log_names_regions_with_the_epochs_of_their_owners(tmp_path: Path) -> None:
    """A region that left and came back stands in one log at two epochs."""
    folder = tmp_path / "log"
    written(folder, [put("r", 8, 1), put("s", 3, 2)], [put("r", 10, 3, 1), put("r", 10, 4, 3)])
    log = dead(folder)
    assert log.named() == {("r", 8), ("s", 3), ("r", 10)}
    assert numbers(log, "r", 8) == [1]
    assert numbers(log, "r", 10) == [3, 4]
    assert numbers(log, "r", 8, 10) == [1, 3, 4]
    assert numbers(log, "r", 9) == numbers(log, "t", 8) == []
    assert log.counts() == {"r": 3, "s": 1}


def test_nothing_behind_the_seal_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    zombie = written(folder, [put("r", 8, 1)])
    sealed = measure(str(folder))
    zombie.append([put("r", 8, 2, 1), put("s", 8, 3)])
    zombie._end_segment()
    zombie.append([put("r", 8, 4, 2)])
    log = DeadLog(str(folder), sealed)
    assert numbers(log, "r", 8) == [1]
    assert log.named() == {("r", 8)}
    assert dead(folder).named() == {("r", 8), ("s", 8)}, "as a later seal would have it"


def test_a_frame_that_was_finished_after_the_seal_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    written(folder, [put("r", 8, 1)])
    (segment,) = folder.glob("*.segment")
    late = frame([put("r", 8, 2, 1)])
    with segment.open("ab") as file:
        file.write(late[:-1])
    sealed = measure(str(folder))
    with segment.open("ab") as file:
        file.write(late[-1:])
    assert numbers(DeadLog(str(folder), sealed), "r", 8) == [1]
    assert numbers(dead(folder), "r", 8) == [1, 2]


def test_a_bound_that_was_raised_after_the_seal_is_no_damage(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    zombie = written(folder, [put("r", 8, 1)])
    sealed = measure(str(folder))
    zombie.append([put("r", 8, 2, 1)])
    assert max(SegmentBounds(str(folder)).read().values()) > sealed.segments[0].length_bytes
    assert numbers(DeadLog(str(folder), sealed), "r", 8) == [1]
    assert sealed_at(sealed.lengths) == sealed, "as the catalogue keeps it"
    assert sealed.segments[0].synced_bytes == sealed.segments[0].length_bytes


def test_a_segment_of_the_seal_that_is_gone_is_damage(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    written(folder, [put("r", 8, 1)])
    sealed = measure(str(folder))
    (segment,) = folder.glob("*.segment")
    segment.unlink()
    with pytest.raises(DamagedData, match="is missing; move the folder aside"):
        DeadLog(str(folder), sealed).load()
    with pytest.raises(DamagedData, match="is missing; move the folder aside"):
        measure(str(folder))


def test_a_segment_that_its_living_writer_has_removed_is_no_damage(tmp_path: Path) -> None:
    """The log of a server that closed a region without an fsync is read while the server writes on."""
    folder = tmp_path / "log"
    writer = written(folder, [put("r", 8, 1)])
    writer._end_segment()
    writer.append([put("s", 3, 2)])
    extent = measure(str(folder))
    first, second = (segment.name for segment in extent.segments)
    writer.remove_segments([second])
    log = DeadLog(str(folder), extent)
    assert numbers(log, "r", 8) == [1]
    assert numbers(log, "s", 3) == []
    (folder / first).unlink()
    with pytest.raises(DamagedData, match="is missing; move the folder aside"):
        DeadLog(str(folder), extent).load()


@pytest.mark.parametrize("late", ["bounds", "names"])
def test_a_segment_that_goes_while_it_is_measured_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    folder = tmp_path / "log"
    writer = written(folder, [put("r", 8, 1)])
    writer._end_segment()
    writer.append([put("s", 3, 2)])
    bounds, names = SegmentBounds(str(folder)).read(), os.listdir(folder)
    writer.remove_segments([measure(str(folder)).segments[1].name])
    with monkeypatch.context() as patched:  # as they were read a moment before
        patched.setattr(SegmentBounds, "read", lambda _self: bounds)
        if late == "names":
            patched.setattr(os, "listdir", lambda _folder: names)
        extent = measure(str(folder))
    assert numbers(DeadLog(str(folder), extent), "r", 8) == [1]


def test_damage_before_the_bound_is_damage_and_behind_it_is_forgiven(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    written(folder, [put("r", 8, 1)], [put("r", 8, 2, 1)])
    (segment,) = folder.glob("*.segment")
    sane, sealed = segment.read_bytes(), measure(str(folder))
    for at in range(len(sane)):
        segment.write_bytes(sane[:at] + bytes([sane[at] ^ 1]) + sane[at + 1 :])
        with pytest.raises(DamagedData, match="move the folder aside"):
            DeadLog(str(folder), sealed).load()
    segment.write_bytes(bytes(len(sane)))
    with pytest.raises(DamagedData, match="damaged or was cut at byte 0"):
        DeadLog(str(folder), sealed).load()
    segment.write_bytes(sane + frame([put("r", 8, 3, 2)])[:-5])
    assert numbers(dead(folder), "r", 8) == [1, 2]


def test_damage_that_came_after_the_seal_is_found_without_the_bounds(tmp_path: Path) -> None:
    """The seal holds them: the file may be lost."""
    folder = tmp_path / "log"
    written(folder, [put("r", 8, 1)])
    sealed = measure(str(folder))
    (folder / "SYNCED").unlink()
    (segment,) = folder.glob("*.segment")
    os.truncate(segment, segment.stat().st_size - 1)
    with pytest.raises(DamagedData, match="were synced"):
        DeadLog(str(folder), sealed).load()


def test_a_segment_of_another_log_is_damage(tmp_path: Path) -> None:
    written(tmp_path / "one", [put("r", 8, 1)])
    written(tmp_path / "other", [put("r", 8, 1)])
    shutil.copy(tmp_path / "one" / "run", tmp_path / "other" / "run")
    with pytest.raises(DamagedData, match="of another log than run"):
        dead(tmp_path / "other").load()


def test_reading_changes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    written(folder, [put("r", 8, 1)])

    def state() -> dict[str, tuple[int, bytes]]:
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}

    before = state()
    log = dead(folder)
    log.named()
    logs = DeadLogs()
    logs.add_log("s1.1", log)
    logs.brought_in("r")
    logs.settle()
    assert state() == before
    assert measure(str(tmp_path / "none")) == Sealed()
    assert not (tmp_path / "none").exists()


def test_a_log_that_is_not_here_keeps_its_regions_from_being_served(tmp_path: Path) -> None:
    logs = DeadLogs()
    with pytest.raises(HostError, match=r"the log of s1\.1"):
        logs.of_region("s1.1", "r", frozenset({8}))
    with pytest.raises(HostError, match="this run"):
        logs.of_region(THIS_RUN, "r", frozenset({8}))


def test_a_log_is_spent_when_no_region_lacks_anything_of_it(tmp_path: Path) -> None:
    for name, region in (("one", "r"), ("two", "r"), ("three", "s")):
        written(tmp_path / name, [put(region, 8, 1)])
    logs, spent = DeadLogs(), list[str]()
    logs.on_spent = spent.append
    for name in ("one", "two", "three"):
        logs.add_log(name, dead(tmp_path / name))
    assert logs.unreplayed_parts("r") == (LogPart("one", 8), LogPart("two", 8))
    assert logs.left == {"r": 2, "s": 1}
    logs.brought_in("r")
    assert spent == ["one", "two"]
    assert logs.unreplayed_parts("r") == ()
    assert logs.left == {"s": 1}
    logs.settle()
    assert spent == ["one", "two"]


@pytest.mark.parametrize("fault", ["damage", "disk"])
def test_a_log_that_cannot_be_read_keeps_no_region_back_that_lacks_another(tmp_path: Path, fault: str) -> None:
    logs = DeadLogs()
    for name, region in (("one", "r"), ("two", "s")):
        written(tmp_path / name, [put(region, 8, 1)])
        logs.add_log(name, dead(tmp_path / name))
    (segment,) = (tmp_path / "one").glob("*.segment")
    segment.unlink()
    if fault == "disk":
        segment.mkdir()
    engine = RocksEngine(cache_bytes=1 << 20)
    engine.dead_logs = logs
    ways = {region: Ownership(region, 9, (LogPart(name, 8),)) for name, region in (("one", "r"), ("two", "s"))}
    store = engine.open_store(str(tmp_path / "s"), SPACES, None, ways["s"])
    assert store.get("a", b"k1") == b"v"
    store.close()
    assert logs.of("two") is None, "nobody lacks anything of it any more"
    with pytest.raises(DamagedData if fault == "damage" else HostError):
        engine.open_store(str(tmp_path / "r"), SPACES, None, ways["r"])


def test_a_lost_record_between_others_is_damage_at_every_epoch(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    written(folder, [put("r", 8, 1), put("r", 10, 3, 2)])
    with pytest.raises(DamagedData, match="lost one before"):
        lacking(dead(folder).records("r", frozenset({8, 10})), {})
    written(tmp_path / "whole", [put("r", 8, 1), put("r", 10, 3, 1)])
    of_last = dead(tmp_path / "whole").records("r", frozenset({10}))
    assert [record.number for _, record in lacking(of_last, {})] == [3], "``complete`` says that the store has 1"


def test_a_folder_of_an_older_program_is_read_at_the_start(tmp_path: Path) -> None:
    """Its log has format 1: no epochs."""
    held = golden("server-log-1.txt")
    era = held["head"][22:]
    folder = tmp_path / SERVER_LOG
    folder.mkdir()
    (tmp_path / "regions").mkdir()
    (folder / "run").write_text(f"{era[:16].hex()} {int.from_bytes(era[16:], 'big')}\n")
    (folder / "00000001.segment").write_bytes(held["head"] + held["a put"])
    started = Started(tmp_path)
    region = "0" * 32
    assert started.logs.unreplayed_parts(region) == (LogPart(SERVER_LOG, BEFORE_EPOCHS),)
    store = started.engine.open_store(str(started.regions / region), SPACES | {"f:a"}, None, started.ownership(region))
    assert store.get("f:a", b"row\x00\x01q") == b"value"
    assert store.get("default", mark(era, 5)) is not None
    store.close()
    assert not list(folder.glob("*.segment"))
    assert head(era) != held["head"], "what is written now has another format"
