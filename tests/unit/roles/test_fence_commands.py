"""Commands that fence: what they get, how they fail, how they are killed; Ceph's, against a program in its place."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from columnar.coordination.node_record import MountRecord
from columnar.roles import fence_commands
from columnar.roles.fence_commands import CephFence, CommandFence, FenceFailed, run_command, storage_fence
from columnar.runtime import command_run

RECORD = MountRecord("n2", 5, "10.0.0.2:9096", "client7")


def run_fence(option: str) -> None:
    fence = storage_fence(option, "/srv/x")
    assert fence is not None
    asyncio.run(fence.fence_mount(RECORD))


def failure(option: str) -> str:
    with pytest.raises(FenceFailed) as failed:
        run_fence(option)
    return str(failed.value)


def test_the_option_names_the_fence() -> None:
    assert storage_fence(" ", "/srv/x") is None
    assert isinstance(storage_fence("cephfs --id fence", "/srv/x"), CephFence)
    assert isinstance(storage_fence("cephfs-fence.sh", "/srv/x"), CommandFence)


def test_a_command_gets_the_node_in_its_environment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = "$COLUMNAR_NODE $COLUMNAR_INCARNATION $COLUMNAR_ADDRESS $COLUMNAR_CLIENT $COLUMNAR_DATA"
    run_fence(f"echo {names} > {out}")
    assert out.read_text() == "n2 5 10.0.0.2:9096 client7 /srv/x\n"


def test_a_command_that_fails_says_why() -> None:
    assert failure("echo first >&2; echo the switch is off >&2; exit 3").endswith(
        "ended with status 3: the switch is off"
    )
    assert failure("echo to stdout; exit 3").endswith("ended with status 3: to stdout")
    assert failure("exit 3").endswith("ended with status 3: it said nothing")
    assert failure("kill -9 $$").endswith("ended with status -9: it said nothing")


def test_a_program_that_is_missing_is_a_failure() -> None:
    with pytest.raises(FenceFailed, match=r"^/no/such/program cannot be run: No such file or directory$"):
        asyncio.run(run_command(["/no/such/program"]))
    with pytest.raises(FenceFailed, match=r"^/dev/null cannot be run: Permission denied$"):
        asyncio.run(run_command(["/dev/null"]))


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence_commands, "LIMIT_S", 0.5)
    pid = tmp_path / "pid"
    begun = time.monotonic()
    assert failure(f"sleep 600 & echo $! > {pid}; wait").endswith("did not end within 0.5 s")
    assert time.monotonic() - begun < 10
    assert _has_ended(int(pid.read_text()))


def test_a_command_that_is_called_off_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    async def call_off() -> None:
        task = asyncio.ensure_future(run_command(["/bin/sh", "-c", f"echo $$ > {pid}; sleep 600"]))
        while not task.done() and not (pid.exists() and pid.read_text().strip()):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        assert not task.done(), task
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(call_off())
    assert _has_ended(int(pid.read_text()))


def test_a_command_that_starts_slowly_holds_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the new process closes files of a folder that stands still."""
    pid = tmp_path / "pid"
    begun, goes_on = threading.Event(), threading.Event()
    start = command_run._Command._start
    started: list[object] = []

    def start_slowly(command: command_run._Command) -> object:
        begun.set()
        goes_on.wait(20)
        started.append(start(command))
        return started[0]

    monkeypatch.setattr(command_run._Command, "_start", start_slowly)

    async def call_off() -> None:
        task = asyncio.ensure_future(run_command(["/bin/sh", "-c", f"echo $$ > {pid}; sleep 600"]))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.wait([task])

    began_s = time.monotonic()
    asyncio.run(call_off())
    took_s = time.monotonic() - began_s
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name == "fence command":
            thread.join(20)
    assert took_s < 10
    assert started, "it was started after all"
    assert not pid.exists() or _has_ended(int(pid.read_text() or "0")), "and killed at once"


def test_a_slow_start_counts_for_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    start = command_run._Command._start
    now_s = [0.0]

    def start_slowly(command: command_run._Command) -> object:
        now_s[0] += fence_commands.LIMIT_S
        return start(command)

    monkeypatch.setattr(command_run, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + now_s[0]))
    monkeypatch.setattr(command_run._Command, "_start", start_slowly)
    began_s = time.monotonic()
    assert failure("sleep 600").endswith("did not end within 30 s")
    assert time.monotonic() - began_s < 20


def test_a_command_ends_with_its_process(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        "import asyncio\nfrom columnar.roles.fence_commands import run_command\n"
        f"asyncio.run(run_command(['/bin/sh', '-c', 'echo $$ > {pid}; exec sleep 600']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    until_s = time.monotonic() + 60
    while not (pid.exists() and pid.read_text().strip()):
        assert process.poll() is None
        assert time.monotonic() < until_s
        time.sleep(0.01)  # another process writes it
    process.kill()
    process.wait()
    assert _has_ended(int(pid.read_text()))


def test_a_command_gets_the_signals_input_and_files_of_a_new_program() -> None:
    read, write = os.pipe()
    code = (
        "import os, signal, sys; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, len(sys.stdin.read()), "
        "sorted(map(int, os.listdir('/proc/self/fd')))[:3], os.getsid(0) == os.getpid(), "
        f"os.path.exists('/proc/self/fd/{write}'))"
    )
    found = asyncio.run(run_command([sys.executable, "-c", code]))
    assert found.decode().split() == ["True", "0", "[0,", "1,", "2]", "True", "False"]
    ignored = asyncio.run(run_command(["/bin/sh", "-c", "grep SigIgn /proc/self/status"]))
    of_python = {number for number in (signal.SIGPIPE, signal.SIGXFSZ) if int(ignored.split()[1], 16) >> number - 1 & 1}
    assert not of_python, "Python ignores them, and no program expects it"  # others may be of who started the tests
    os.close(read)
    os.close(write)


def test_what_a_command_leaves_behind_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    run_fence(f"sleep 600 > /dev/null 2>&1 & echo $! > {pid}")
    assert _has_ended(int(pid.read_text()))
    assert asyncio.run(run_command(["/bin/sh", "-c", "(sleep 0.2; echo late) & echo first"])) == b"first\nlate\n"


def _has_ended(pid: int) -> bool:
    """Wait for the end of a process that is no child."""
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_much_output_is_read_and_only_its_end_is_kept() -> None:
    found = asyncio.run(run_command([sys.executable, "-c", "print('x' * 5_000_000, end='yz')"]))
    assert len(found) == command_run.OUTPUT_BYTES
    assert found.endswith(b"xyz")


def test_a_command_is_not_run_against_a_machine_that_is_in_use_again() -> None:
    fence = CommandFence("true", "/srv/x")
    earlier, later, other = (
        MountRecord("n2", 4, "a:1", "client7"),
        MountRecord("n2", 8, "a:1", "client9"),
        MountRecord("n3", 9, "a:1", "client7"),
    )
    assert fence.find_sparing(RECORD, [earlier, other]) is None
    assert fence.find_sparing(RECORD, [earlier, later]) is later


def test_a_client_that_a_living_node_uses_is_not_evicted() -> None:
    fence = CephFence([])
    own, other = MountRecord("n1", 4, "a:1", "client7"), MountRecord("n2", 8, "a:1", "client9")
    assert fence.find_sparing(RECORD, [other]) is None
    assert fence.find_sparing(RECORD, [other, own]) is own
    unnamed = MountRecord("n2", 5, "a:1")
    assert fence.find_sparing(unnamed, [MountRecord("n3", 6, "a:1")]) is None, "no name is no common name"


# --- Ceph --------------------------------------------------------------------------------------------

PROGRAM = """#!{python}
import json, pathlib, sys
words = [word for word in sys.argv[1:] if word not in ("--format", "json")]
assert words[:4] == ["--id", "fence", "--connect-timeout", "5"], words
state = pathlib.Path({state!r})
found = json.loads(state.read_text())
print("a line of the library's", file=sys.stderr)
if words[4:] == ["fs", "dump"]:
    print(json.dumps(found["map"]))
elif words[6:8] == ["client", "evict"]:
    if found.get("is_refusing"):
        sys.exit("Error EACCES: access denied")
    number = int(words[8].removeprefix("id="))
    if number in found["sessions"][words[5]]:
        found["sessions"][words[5]].remove(number)
        found["evicted"].append([words[5], number])
    state.write_text(json.dumps(found))
else:
    sys.exit(str(words))
"""


class Ceph:
    """A program named ``ceph`` with two file systems, of which the second has two MDSs and a standby."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = folder / "state.json"
        program = folder / "ceph"
        program.write_text(PROGRAM.format(python=sys.executable, state=str(self.state)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        one, two = (
            {"a": (0, "up:active")},
            {"b": (0, "up:active"), "c": (1, "up:active"), "d": (-1, "up:standby-replay")},
        )
        self.found: dict[str, object] = {
            "map": {"filesystems": [_file_system("one", **one), _file_system("two", **two)]},
            "sessions": {"mds.a": [3, 70], "mds.b": [7, 8], "mds.c": [7]},
            "evicted": [],
        }

    def run_fence(self) -> list[list[object]]:
        self.state.write_text(json.dumps(self.found))
        run_fence("cephfs --id fence")
        return self.evicted()

    def evicted(self) -> list[list[object]]:
        return list(json.loads(self.state.read_text())["evicted"])

    def failure(self) -> str:
        self.state.write_text(json.dumps(self.found))
        return failure("cephfs --id fence")


def _file_system(name: str, **mds: tuple[int, str]) -> dict[str, object]:
    info = {f"gid_{one}": {"name": one, "rank": rank, "state": state} for one, (rank, state) in mds.items()}
    return {"mdsmap": {"fs_name": name, "in": [rank for rank, _ in mds.values() if rank >= 0], "info": info}}


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ceph:
    return Ceph(tmp_path, monkeypatch)


def test_the_client_is_evicted_at_each_mds_that_knows_it(ceph: Ceph) -> None:
    assert ceph.run_fence() == [["mds.b", 7], ["mds.c", 7]]


def test_a_client_that_is_gone_is_fenced(ceph: Ceph) -> None:
    ceph.found["sessions"] = {"mds.a": [], "mds.b": [], "mds.c": []}
    assert ceph.run_fence() == []


def test_an_mds_that_is_not_active_may_know_the_client(ceph: Ceph) -> None:
    ceph.found["map"] = {
        "filesystems": [_file_system("one", a=(0, "up:active")), _file_system("two", b=(0, "up:replay"))]
    }
    assert ceph.failure() == "not every MDS is active: rank 0 of two is up:replay"
    assert ceph.evicted() == [], "no session is known"
    ceph.found["sessions"] = {"mds.a": [7]}
    assert ceph.failure() == "not every MDS is active: rank 0 of two is up:replay"
    assert ceph.evicted() == [["mds.a", 7]], "where it can be"


def test_a_rank_without_an_mds_is_named(ceph: Ceph) -> None:
    ceph.found["map"] = {"filesystems": [{"mdsmap": {"fs_name": "one", "in": [0], "info": {}}}]}
    assert ceph.failure() == "not every MDS is active: rank 0 of one is failed"
    ceph.found["map"] = {"filesystems": []}
    assert ceph.failure() == "not every MDS is active: there is none"


def test_a_refused_eviction_is_a_failure(ceph: Ceph) -> None:
    ceph.found["is_refusing"] = True
    assert ceph.failure().endswith("client evict id=7 ended with status 1: Error EACCES: access denied")


def test_a_map_of_another_form_is_a_failure(ceph: Ceph) -> None:
    ceph.found["map"] = {"filesystems": [{}]}
    assert ceph.failure() == "the map of file systems lacks 'mdsmap'"


@pytest.mark.parametrize("client", ["", "n2", "client", "client7x"])
def test_a_node_that_names_no_client_is_not_fenced(ceph: Ceph, client: str) -> None:
    with pytest.raises(FenceFailed, match="names no client of CephFS"):
        asyncio.run(CephFence([]).fence_mount(MountRecord("n2", 5, "a:1", client)))
