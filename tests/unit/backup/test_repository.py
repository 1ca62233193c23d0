"""Backups in a repository over the memory store: what is sent, what is removed, and kills before any step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.backup.backup_manifest import Backup
from columnar.backup.claims import LEASE_S, STALLED_S, Claim, ClaimLost, claimed, has_ended, own_process
from columnar.backup.repository import Repository
from columnar.backup.saving import Saving
from columnar.errors import CallerError, DamagedData, HostError
from tests.support.deep import seeds
from tests.support.memory_backup_store import Killed, MemoryBackupStore
from tests.support.seeds import seed

KEY = bytes(range(32))
KILLS = seeds("kills of backups and removals", deep=3_000, short=150)


def nothing(_done: int) -> None:
    pass


class Source:
    """A folder whose table files never change and whose other files do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.files: dict[str, bytes] = {}

    def write(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)
        self.files[name] = data

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()
        del self.files[name]

    def save(self, repository: Repository, taken_ms: int) -> tuple[Backup, Saving]:
        with claimed(repository.store, "saving") as claim:
            saving = Saving.begun(repository, claim, nothing)
            for name in sorted(self.files):
                saving.add_file(str(self.folder / name), f"regions/r/{name}")
            return saving.finish(("t",), taken_ms, taken_ms + 1), saving


def contents(repository: Repository, backup: Backup) -> dict[str, bytes]:
    return {file.path.split("/")[-1]: b"".join(repository.file_pieces(file)) for file in backup.files}


@pytest.fixture
def store() -> MemoryBackupStore:
    return MemoryBackupStore()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    source = Source(tmp_path / "source")
    source.write("1.sst", b"first" * 1_000)
    source.write("CURRENT", b"one")
    return source


@pytest.fixture(params=[None, KEY], ids=["plain", "encrypted"])
def repository(request: pytest.FixtureRequest, store: MemoryBackupStore) -> Repository:
    return Repository.made(store, request.param)


def test_a_second_backup_sends_what_is_new_and_each_is_whole(repository: Repository, source: Source) -> None:
    first, saving = source.save(repository, 1_000)
    assert (saving.done["copied_files"], saving.done["reused_files"]) == (2, 0)
    old = dict(source.files)
    source.write("2.sst", b"second")
    source.write("CURRENT", b"two")
    second, saving = source.save(repository, 2_000)
    assert (saving.done["copied_files"], saving.done["reused_files"]) == (2, 1)
    assert repository.names() == [first.name, second.name]
    assert contents(repository, repository.read_backup(first.name)) == old
    assert contents(repository, repository.read_backup(second.name)) == source.files
    assert repository.read_backup(second.name) == second


def test_a_known_table_file_is_not_read_again(
    repository: Repository, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.save(repository, 1_000)
    hashed = []
    monkeypatch.setattr("columnar.backup.saving.checksum", lambda path: hashed.append(path) or "ab" * 32)
    with pytest.raises(HostError, match="changed while it was copied"):  # the checksum above is not CURRENT's
        source.save(repository, 2_000)
    assert [Path(one).name for one in hashed] == ["CURRENT"]


def test_a_file_that_changes_while_it_is_sent_is_not_saved(
    store: MemoryBackupStore, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.made(store, None)
    monkeypatch.setattr("columnar.backup.saving.checksum", lambda _path: "ab" * 32)
    with pytest.raises(HostError, match="changed while it was copied"):
        source.save(repository, 1_000)
    assert repository.names() == []
    assert not any(name.startswith(("files", "locks")) for name in store.objects)


def test_removing_leaves_what_other_backups_need(
    repository: Repository, source: Source, store: MemoryBackupStore
) -> None:
    first, _ = source.save(repository, 1_000)
    source.remove("1.sst")
    source.write("2.sst", b"second")
    second, _ = source.save(repository, 2_000)
    with pytest.raises(CallerError, match="has no backup x"):
        repository.remove_backups(["x", first.name])
    assert repository.names() == [first.name, second.name]
    assert repository.remove_backups([first.name]) > 0
    assert repository.names() == [second.name]
    assert list(repository.findings([second], nothing)) == []
    files = [name for name in store.objects if name.startswith("files/")]
    assert len(files) == 2
    assert not any(name.startswith("locks/") for name in store.objects)


def test_keep_removes_the_oldest(repository: Repository, source: Source) -> None:
    names = [source.save(repository, n * 1_000)[0].name for n in range(1, 5)]
    assert repository.keep(2) == 2
    assert repository.names() == names[2:]
    assert repository.keep(2) == 0


def test_check_names_what_is_missing_short_or_changed(
    repository: Repository, source: Source, store: MemoryBackupStore
) -> None:
    backup, _ = source.save(repository, 1_000)
    assert list(repository.findings([backup, backup], nothing)) == []
    name = repository.object_of(backup.files[0])
    whole = store.objects[name]
    cases = {
        "is missing": None,
        "is damaged: it has": whole[0][:-1],
        "is damaged": whole[0][:-1] + bytes([whole[0][-1] ^ 1]),
    }
    for said, data in cases.items():
        store.objects.pop(name, None)
        if data is not None:
            store.objects[name] = data, 0
        (line,) = repository.findings([backup], nothing)
        assert said in line, line
        assert f"it is {backup.files[0].path} of backup {backup.name}" in line
        quick = list(repository.findings([backup], nothing, reads=False))
        assert len(quick) == (0 if said == "is damaged" else 1)


def test_the_right_key_is_needed(store: MemoryBackupStore, source: Source) -> None:
    backup, _ = source.save(Repository.made(store, KEY), 1_000)
    with pytest.raises(CallerError, match="is encrypted: give its key with --key-file"):
        Repository.opened(store, None)
    with pytest.raises(CallerError, match="is encrypted with another key"):
        Repository.made(store, bytes(32))
    assert Repository.opened(store, KEY).newest() == backup
    held = b"".join(data + name.encode() for name, (data, _) in store.objects.items())
    assert b"CURRENT" not in held
    assert b"regions" not in held
    assert b"first" not in held
    assert not any(file.sha256.encode() in held for file in backup.files)


def test_a_plain_repository_takes_no_key_and_a_strange_place_is_refused(store: MemoryBackupStore) -> None:
    with pytest.raises(CallerError, match="has no backups"):
        Repository.opened(store, None)
    Repository.made(store, None)
    with pytest.raises(CallerError, match="is not encrypted: leave --key-file out"):
        Repository.opened(store, KEY)
    store.put_bytes("FORMAT", b"columnar-backup 3\n")
    with pytest.raises(CallerError, match=r"is of format .columnar-backup 3.; .* upgrade"):
        Repository.opened(store, None)
    other = MemoryBackupStore()
    other.put_bytes("holiday.jpg", b"")
    with pytest.raises(CallerError, match="has no backups"):
        Repository.made(other, None)
    assert list(other.objects) == ["holiday.jpg"]


def test_an_exchanged_manifest_is_noticed(store: MemoryBackupStore, source: Source) -> None:
    repository = Repository.made(store, KEY)
    first, second = (source.save(repository, ms)[0] for ms in (1_000, 2_000))
    place = f"backups/{second.name}.sealed"
    store.objects[place] = store.objects[f"backups/{first.name}.sealed"]
    with pytest.raises(DamagedData):
        repository.read_backup(second.name)


# --- claims ----------------------------------------------------------------------------------------------------------


def test_several_may_save_and_one_removes_alone(store: MemoryBackupStore) -> None:
    with claimed(store, "saving"), claimed(store, "saving"):
        with pytest.raises(CallerError, match="are being saved in memory by process"), claimed(store, "removing"):
            pass
        assert len(store.objects) == 2
    with claimed(store, "removing"):
        for kind in ("saving", "removing"):
            with pytest.raises(CallerError, match="are being removed"), claimed(store, kind):
                pass
    assert store.objects == {}


def test_a_claim_of_an_ended_process_or_an_old_one_is_void(
    store: MemoryBackupStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot, namespace, pid, start = own_process().split()
    assert not has_ended(own_process())
    assert has_ended(f"{boot} {namespace} {pid} {int(start) + 1}")
    assert not has_ended(f"other {namespace} 1 1")
    assert not has_ended("")
    Claim(store, "saving", lambda: 0.0).take_claim()
    monkeypatch.setattr("columnar.backup.claims.has_ended", lambda _process: True)
    with claimed(store, "removing"):
        assert len(store.objects) == 1
    monkeypatch.undo()
    stalled = Claim(store, "saving", lambda: 0.0)
    stalled.take_claim()
    store.now_ms += round(LEASE_S * 1_000)
    with pytest.raises(CallerError), claimed(store, "removing"):
        pass
    store.now_ms += 1
    with claimed(store, "removing"), pytest.raises(ClaimLost):
        stalled.confirm()


def test_a_claim_is_renewed_and_lost_by_a_process_that_stood_still(store: MemoryBackupStore) -> None:
    now = [0.0]
    claim = Claim(store, "saving", lambda: now[0])
    claim.take_claim()
    began_ms = store.now_ms
    for _ in range(20):
        now[0] += 61
        store.now_ms += 61_000
        claim.renew_if_due()
    assert store.objects[claim.name][1] == store.now_ms > began_ms
    now[0] += STALLED_S + 1
    with pytest.raises(ClaimLost):
        claim.renew_if_due()


def test_a_backup_whose_claim_was_taken_is_not_completed(store: MemoryBackupStore, source: Source) -> None:
    repository = Repository.made(store, None)
    with pytest.raises(ClaimLost), claimed(store, "saving") as claim:  # noqa: PT012 - the saving is what raises
        saving = Saving.begun(repository, claim, nothing)
        saving.add_file(str(source.folder / "CURRENT"), "CURRENT")
        store.remove_objects([claim.name])
        saving.finish(("t",), 1_000, 1_000)
    assert repository.names() == []
    assert not any(name.startswith("backups/") for name in store.ever_put)


def test_a_claim_that_is_taken_at_the_last_moment_takes_the_backup_back(
    store: MemoryBackupStore, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.made(store, None)
    confirmed = Claim.confirm

    def confirm_once(claim: Claim) -> None:
        confirmed(claim)
        store.objects.pop(claim.name)

    monkeypatch.setattr(Claim, "confirm", confirm_once)
    with pytest.raises(ClaimLost):
        source.save(repository, 1_000)
    assert any(name.startswith("backups/") for name in store.ever_put)
    assert repository.names() == []


# --- kills -----------------------------------------------------------------------------------------------------------


def steps_of(rng: random.Random, source: Source, repository: Repository, number: int) -> Iterator[str]:
    """Do one command that may be killed; yield what it is."""
    if rng.random() < 0.6 or not repository.names():
        if rng.random() < 0.7:
            source.write(f"{number}.sst", rng.randbytes(rng.randrange(4_000)))
        tables = [name for name in source.files if name.endswith(".sst")]
        if len(tables) > 4:
            source.remove(rng.choice(tables))
        source.write("CURRENT", b"%d" % number)
        yield "saved"
        source.save(repository, number * 1_000)
    else:
        yield "removed"
        names = repository.names()
        repository.remove_backups(rng.sample(names, rng.randrange(0, len(names))))


def test_killed_at_any_step_every_backup_that_is_listed_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = seed(360_801)
    print(f"seed {number}")
    rng = random.Random(number)
    monkeypatch.setattr("columnar.backup.claims.has_ended", lambda _process: True)  # each command before has ended
    store, source = MemoryBackupStore(), Source(tmp_path / "source")
    sources: dict[str, dict[str, bytes]] = {}  # what each backup must have
    killed = 0
    for round_ in range(1, KILLS + 1):
        key = KEY if round_ > KILLS // 2 else None
        if round_ == KILLS // 2 + 1:
            store, sources = MemoryBackupStore(), {}
        store.revive(rng.randrange(25) if rng.random() < 0.9 else None)
        try:
            for what in steps_of(rng, source, Repository.made(store, key), round_):
                del what
        except Killed:
            killed += 1
        store.revive()
        repository = Repository.made(store, key)
        for name in repository.names():
            backup = repository.read_backup(name)
            expected = sources.setdefault(name, dict(source.files))
            assert contents(repository, backup) == expected, f"seed {number}, round {round_}: {name}"
    assert killed > KILLS // 3
    repository.keep(1)
    needed = {repository.object_of(file) for file in repository.read_backup(repository.names()[0]).files}
    assert {name for name in store.objects if name.startswith("files/")} == needed
    assert store.half == []


def test_a_backup_goes_on_where_it_was_killed(store: MemoryBackupStore, source: Source) -> None:
    repository = Repository.made(store, None)
    for n in range(20):
        source.write(f"{n}.sst", bytes([n]) * 100)
    store.revive(steps_left=40)
    with pytest.raises(Killed):
        source.save(repository, 1_000)
    store.revive()
    there = sum(name.startswith("files/") for name in store.objects)
    assert 0 < there < 21
    _, saving = source.save(repository, 2_000)
    assert saving.done["reused_files"] == there
    assert saving.done["copied_files"] == 21 - there
