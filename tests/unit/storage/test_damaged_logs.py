"""Logs of servers that are over and miss something: never taken for shorter ones, and salvaged as far as they go."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from columnar.clock import StoreClock
from columnar.errors import DamagedData, HostError
from columnar.storage import dead_logs
from columnar.storage.dead_logs import DeadLog, measure, sealed_at
from columnar.storage.log_salvage import salvaged
from columnar.storage.ownership import Ownership
from columnar.storage.process_stores import ServerStores
from columnar.storage.recovery import lacking
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_folders import LOGGED, Seal, dead_log, log_of, make_spent, note_log, sync_extent
from columnar.storage.server_log import Written
from columnar.storage.server_log_files import ServerLog, begin_run

SERVER = "s1.5"
HEAD = 50  # bytes before the first frame of a segment; those of its run are random, and may be any two letters


def put(region: str, number: int, previous: int = 0) -> Written:
    return region, 8, number, previous, [("a", b"k%d" % number, b"v" * 50, None)]


ROUNDS = [[put("r", 1), put("s", 2)], [put("r", 3, 1)], [put("s", 4, 2)], [put("r", 5, 3), put("s", 6, 4)]]


def begun(data: Path) -> ServerLog:
    """As a server's own, in a folder of its own."""
    (data / "regions").mkdir()
    (data / "servers" / SERVER).mkdir(parents=True)
    (data / "servers" / SERVER / "clock").touch()
    log, _ = begin_run(log_of(str(data), SERVER), has_begun=lambda: note_log(str(data), SERVER))
    return log


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder in which a server died with two segments."""
    log = begun(tmp_path)
    log.prepare()
    for number, records in enumerate(ROUNDS):
        if number == 3:
            log._end_segment()
        log.append(records)
    return tmp_path


def folder(data: Path) -> Path:
    return Path(log_of(str(data), SERVER))


def segment(data: Path, number: int = 1) -> Path:
    return folder(data) / f"{number:08d}.segment"


def read(data: Path, seal: Seal | None = None) -> DeadLog:
    return dead_log(str(data), SERVER, seal, is_named=True)


def numbers(log: DeadLog, region: str) -> list[int]:
    return [record.number for _, record in log.records(region, frozenset({8})).found]


def flip(path: Path, at: int) -> None:
    held = bytearray(path.read_bytes())
    held[at] ^= 1
    path.write_bytes(held)


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def swap_segments(data: Path) -> None:
    one, other = segment(data), segment(data, 2)
    one.rename(data / "aside")
    other.rename(one)
    (data / "aside").rename(other)


def another_server(data: Path, what: str) -> None:
    """The folder, or the log within, is that of another server."""
    (data / "servers" / "s2.6").mkdir()
    log, _ = begin_run(log_of(str(data), "s2.6"), has_begun=lambda: note_log(str(data), "s2.6"))
    log.prepare()
    log.append([put("r", 1), put("s", 2)])
    log.append([put("r", 3, 1)])
    folders = [data / "servers" / name / ("log" if what == "log" else "") for name in (SERVER, "s2.6")]
    shutil.rmtree(folders[0])
    folders[1].rename(folders[0])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "the server's folder": lambda data: shutil.rmtree(data / "servers" / SERVER),
    "all servers' folders": lambda data: shutil.rmtree(data / "servers"),
    "the log's folder": lambda data: shutil.rmtree(folder(data)),
    "all files": lambda data: [path.unlink() for path in folder(data).iterdir()],
    "run": lambda data: (folder(data) / "run").unlink(),
    "another name in run": lambda data: (folder(data) / "run").write_text(f"{bytes(16).hex()} 1\n"),
    "nonsense in run": lambda data: (folder(data) / "run").write_text("nonsense\n"),
    "SYNCED": lambda data: (folder(data) / "SYNCED").unlink(),
    "a segment": lambda data: segment(data).unlink(),
    "the last segment": lambda data: segment(data, 2).unlink(),
    "the end of a segment": lambda data: os.truncate(segment(data), segment(data).stat().st_size - 1),
    "all of a segment": lambda data: os.truncate(segment(data), 0),
    "a bit": lambda data: flip(segment(data), 100),
    "a bit of the head": lambda data: flip(segment(data), 25),
    "the first bit": lambda data: flip(segment(data), 0),
    "all files of the server": lambda data: emptied(data / "servers" / SERVER),
    "the order of the segments": swap_segments,
    "its place to another server's": lambda data: another_server(data, "servers"),
    "its log's place to another server's": lambda data: another_server(data, "log"),
}


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("when", ["before the seal", "after it"])
def test_a_log_that_lost_something_is_damage_that_a_command_ends(data: Path, what: str, when: str) -> None:
    """A dead server's log that was missing counted as empty."""
    seal = None if when == "before the seal" else Seal(read(data).extent)
    DAMAGES[what](data)
    with pytest.raises(DamagedData) as damage:
        read(data, seal)
    assert f"'columnar repair --data {data}'" in damage.value.text
    assert str(data / "servers") in damage.value.text
    salvaged(str(folder(data)), seal.lengths if seal is not None else ())


def test_a_segment_that_stands_there_twice_is_damage_and_its_batches_count_once(data: Path) -> None:
    """Its values were brought in again, over later ones."""
    seal = Seal(read(data).extent)
    shutil.copy(segment(data), segment(data, 3))
    with pytest.raises(DamagedData, match=r"00000003.segment does not follow .* batch 1 of region r .*columnar repair"):
        read(data)
    assert numbers(salvaged(str(folder(data)), ()), "r") == [1, 3, 5]
    assert numbers(read(data, seal), "r") == [1, 3, 5], "the seal does not list it"


def test_batches_of_several_regions_stand_in_any_order(tmp_path: Path) -> None:
    """A region whose writers waited later is in a later round, with a batch of before."""
    log = begun(tmp_path)
    log.prepare()
    log.append([put("s", 2), put("r", 4)])
    log.append([put("t", 1)])
    log._end_segment()
    log.append([put("u", 3), put("r", 5, 4)])
    found = read(tmp_path)
    assert {region: numbers(found, region) for region in "rstu"} == {"r": [4, 5], "s": [2], "t": [1], "u": [3]}


def test_several_threads_read_a_log_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two at once the second took the first one's place for the log's, and called it damaged."""
    seal = Seal(read(data).extent)
    log = DeadLog(str(folder(data)), sealed_at(seal.lengths))
    entered, another = list[str](), threading.Event()
    whole = dead_logs._first_bytes

    def slowly(path: str, count: int) -> bytes | None:
        entered.append(path)
        if len(entered) > 1:
            another.set()
        another.wait(0.2)  # for a second reader, which must not come
        return whole(path, count)

    monkeypatch.setattr(dead_logs, "_first_bytes", slowly)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: log.extent, range(4)))
    assert found == [seal.lengths] * 4
    assert len(entered) == 2, "segments"


def test_a_log_whose_segments_changed_places_is_salvaged_in_its_order(data: Path) -> None:
    swap_segments(data)
    assert numbers(salvaged(str(folder(data)), ()), "r") == [1, 3, 5]


@pytest.mark.parametrize("lengths", [(), (("00000001.segment", 30),), (("00000002.segment", 10_000),)])
def test_a_seal_that_ends_before_what_was_synced_is_damage(data: Path, lengths: tuple[tuple[str, int], ...]) -> None:
    """The rest of the log was passed over."""
    with pytest.raises(DamagedData, match=r"its seal in the catalogue ends at byte .* were synced; .*columnar repair"):
        read(data, Seal(lengths))


def test_what_is_said_of_a_log_is_believed_only_with_its_checksum(data: Path) -> None:
    """Folders of older programs have an empty file; one that was damaged says nothing about the log beside it."""
    logged = data / "servers" / SERVER / LOGGED
    whole = logged.read_bytes()
    for said in (b"", whole[:-1], whole[:10], whole.replace(b"s1", b"s2")):
        logged.write_bytes(said)
        assert numbers(read(data), "r") == [1, 3, 5]


@pytest.mark.parametrize("when", ["before the seal", "after it"])
def test_a_data_folder_that_was_moved_away_has_lost_nothing(data: Path, when: str) -> None:
    """Whoever asks tries again."""
    seal = None if when == "before the seal" else Seal(read(data).extent)
    data.rename(data.with_name("away"))
    with pytest.raises(HostError, match="is not at its place"):
        read(data, seal)
    with pytest.raises(HostError, match="is not at its place"):
        DeadLog(str(folder(data)), sealed_at((("00000001.segment", 200),))).load()
    data.with_name("away").rename(data)
    assert numbers(read(data, seal), "r") == [1, 3, 5]


@pytest.mark.parametrize("what", ["all of a segment", "the end of a segment", "a bit"])
def test_what_the_seal_lists_must_be_there_whatever_the_bounds_say(data: Path, what: str) -> None:
    """The bounds are mapped and not synced: a power cut may leave older ones."""
    seal = Seal(read(data).extent)
    (folder(data) / "SYNCED").write_bytes(bytes(128))
    assert numbers(read(data, seal), "r") == [1, 3, 5]
    DAMAGES[what](data)
    with pytest.raises(DamagedData, match="repair"):
        read(data, seal)


def test_a_segment_that_the_seal_lists_cannot_be_given_back_by_the_dead(data: Path) -> None:
    seal = Seal(read(data).extent)
    (folder(data) / "SYNCED").write_bytes(bytes(128))  # as if its writer had removed both
    segment(data, 2).unlink()
    with pytest.raises(DamagedData, match="has not all segments that it had at the end"):
        read(data, seal)


def test_damage_before_whole_frames_is_found_without_the_bounds(data: Path) -> None:
    """A frame is written when the one before is on disk: what a power cut took has nothing behind it."""
    (folder(data) / "SYNCED").write_bytes(bytes(128))
    whole = segment(data).read_bytes()
    ends = [end for end in range(60, len(whole)) if len(numbers(cut(data, whole, end), "r")) == 2]
    flip(segment(data), 100)
    with pytest.raises(DamagedData, match="whole frames follow"):
        read(data)
    assert ends, "of the last frame anything may be left"


def cut(data: Path, whole: bytes, end: int) -> DeadLog:
    segment(data).write_bytes(whole[:end])
    log = DeadLog(str(folder(data)), measure(str(folder(data)))).load()
    segment(data).write_bytes(whole)
    return log


def test_bytes_of_older_frames_in_a_value_are_no_frames_that_follow(tmp_path: Path) -> None:
    log = begun(tmp_path)
    log.prepare()
    log.append([put("r", 1)])
    older = segment(tmp_path).read_bytes()[50:]
    log.append([("r", 8, 2, 1, [("a", b"k", older, None)])])
    (folder(tmp_path) / "SYNCED").write_bytes(bytes(128))
    os.truncate(segment(tmp_path), segment(tmp_path).stat().st_size - 1)
    assert numbers(read(tmp_path), "r") == [1], "the second frame was never acknowledged"
    assert numbers(salvaged(str(folder(tmp_path)), ()), "r") == [1]


# --- what may be missing -------------------------------------------------------------------------------


def test_a_server_that_never_shared_an_fsync_has_no_log(tmp_path: Path) -> None:
    (tmp_path / "servers" / SERVER).mkdir(parents=True)
    (tmp_path / "servers" / SERVER / "clock").touch()
    assert read(tmp_path).extent == ()


def test_a_restored_folder_lacks_nothing_of_any_log_whatever_the_seals_say(data: Path, tmp_path: Path) -> None:
    """The catalogue of a backup may still name a log as sealed and unreplayed: the copies of regions have it all."""
    seal = Seal(read(data).extent)
    restored = tmp_path / "restored"
    make_spent(str(restored), [SERVER])
    for one in (seal, None):
        assert read(restored, one).extent == ()
        assert read(restored, one).named() == frozenset()
    stores = ServerStores(str(restored), "s2.9", RocksEngine(cache_bytes=1 << 20))
    stores.clock = StoreClock(lambda: 1)
    assert stores.dead_log(SERVER, seal.lengths).load().named() == frozenset()


def test_a_log_of_an_older_program_need_not_be_noted(data: Path) -> None:
    (data / "servers" / SERVER / LOGGED).unlink()
    assert numbers(read(data), "r") == [1, 3, 5]
    shutil.rmtree(folder(data))
    assert read(data).extent == ()


def test_a_log_is_noted_when_it_is_begun_and_not_before(tmp_path: Path) -> None:
    """A crash between the two leaves no log that must be there."""
    log = begun(tmp_path)
    log._bounds.begin = lambda: (_ for _ in ()).throw(OSError("the process ends here"))  # type: ignore[method-assign]
    with pytest.raises(Exception, match="cannot write the server's log"):
        log.prepare()
    assert not log.is_ready, "nothing was acknowledged by it"
    assert read(tmp_path).extent == ()


def test_a_server_that_nobody_names_may_have_gone(tmp_path: Path) -> None:
    assert dead_log(str(tmp_path), SERVER, None, is_named=False).extent == ()


def test_the_log_of_a_server_that_stopped_is_empty(tmp_path: Path) -> None:
    log = begun(tmp_path)
    log.prepare()
    log.append([put("r", 1)])
    log.round_stands(1, {})
    log.close()
    assert read(tmp_path).extent == ()


def test_an_unsynced_end_is_no_part_of_the_seal(data: Path) -> None:
    """Its length may grow shorter by a power cut, whatever it was when the server died."""
    with segment(data).open("ab") as file:
        file.write(b"the beginning of a frame")
    log = read(data)
    sync_extent(log)
    assert dict(log.extent)[segment(data).name] == segment(data).stat().st_size - len("the beginning of a frame")
    os.truncate(segment(data), dict(log.extent)[segment(data).name])
    assert numbers(read(data, Seal(log.extent)), "s") == [2, 4, 6]


def test_a_seal_of_an_older_program_covers_what_the_bounds_do(data: Path) -> None:
    """Its lengths are those of files, with ends that need not be whole."""
    with segment(data).open("ab") as file:
        file.write(b"the beginning of a frame")
    seal = Seal(tuple((path.name, path.stat().st_size) for path in sorted(folder(data).glob("*.segment"))), True)
    assert numbers(read(data, seal), "r") == [1, 3, 5]
    flip(segment(data), 100)
    with pytest.raises(DamagedData, match="repair"):
        read(data, seal)


# --- salvage -------------------------------------------------------------------------------------------


def test_frames_behind_damage_are_salvaged_and_the_rest_is_named(data: Path) -> None:
    whole = salvaged(str(folder(data)), ())
    assert whole.lost == []
    first = segment(data).read_bytes()
    second_frame = first.index(b"k3", HEAD)
    flip(segment(data), second_frame)
    log = salvaged(str(folder(data)), ())
    assert numbers(log, "r") == [1, 5]
    assert numbers(log, "s") == [2, 4, 6]
    (text,) = log.lost
    assert str(segment(data)) in text
    assert "batches 3 to 3 of all its regions stood there" in text


def test_a_damaged_length_hides_no_frame_behind_it(data: Path) -> None:
    first = segment(data).read_bytes()
    frame = first.index(b"k3", HEAD) - 40
    for at in range(HEAD, len(first)):
        segment(data).write_bytes(first[:at] + bytes([first[at] ^ 0xFF]) + first[at + 1 :])
        log = salvaged(str(folder(data)), ())
        assert len(numbers(log, "r")) + len(numbers(log, "s")) in (4, 5), at
        assert len(log.lost) == 1, at
    assert frame > 0


@pytest.mark.parametrize(
    "what", ["run", "another name in run", "nonsense in run", "a bit of the head", "the first bit"]
)
def test_the_name_of_a_log_stands_twice(data: Path, what: str) -> None:
    """In ``run`` and in the head of each segment: without it no store knows which batches it has."""
    sane = read(data).records("r", frozenset({8}))
    DAMAGES[what](data)
    log = salvaged(str(folder(data)), ())
    found = log.records("r", frozenset({8}))
    assert found.identity == sane.identity
    assert found.found == sane.found


def test_a_gap_of_a_salvaged_log_is_no_damage_and_names_the_region(data: Path) -> None:
    flip(segment(data), segment(data).read_bytes().index(b"k3", HEAD))
    log = salvaged(str(folder(data)), ())
    assert [record.number for _, record in lacking(log.records("r", frozenset({8})), {})] == [1, 5]
    assert log.gaps == {"r"}
    assert [record.number for _, record in lacking(log.records("s", frozenset({8})), {})] == [2, 4, 6]
    assert log.gaps == {"r"}


def test_a_salvaged_log_is_brought_into_a_store_once(data: Path) -> None:
    from columnar.storage.ownership import LogPart

    flip(segment(data), segment(data).read_bytes().index(b"k3", HEAD))
    claim = Ownership("r", 9, (LogPart(SERVER, 8),))
    for _ in range(2):
        engine = RocksEngine(cache_bytes=1 << 20)
        engine.dead_logs.add_log(SERVER, salvaged(str(folder(data)), ()))
        store = engine.open_store(str(data / "r"), frozenset({"a"}), None, claim)
        assert [key for key, _ in store.scan("a", b"", None)] == [b"k1", b"k5"]
        store.close()


def test_a_log_of_which_nothing_is_left_is_salvaged_to_nothing(data: Path) -> None:
    shutil.rmtree(data / "servers")
    log = salvaged(str(folder(data)), (("00000001.segment", 200),))
    assert log.named() == frozenset()
    assert any("is missing" in text for text in log.lost)
