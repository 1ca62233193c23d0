"""Systems under test: a file says their roles (programs), how pages get in, and where they answer.

    title, url           where the wiki answers, such as "http://127.0.0.1:{port.wiki}"
    titles               an address that lists the page names, one a line, or a file that a step of ``fill`` writes
    needs                {name = "what it is"}: values that the user gives with --set NAME=VALUE
    [words] [lists]      texts, and lists of words, for the commands of system and experiment
    prepare, fill        commands before the roles start, and once they run
    versions             commands that print a version, the first line of each
    [[roles]]            name, start, ready = {address, url or line}, stop, cpus = [0], quota = 0.1, ready_s, pids,
                         members, member_count, member_quota
    [[counters]]         name, url, metric, by: a counter in Prometheus' text, read before and after each load; ``by``
                         is a label, each value of which is counted apart

No word goes through a shell.  Ports ({port.NAME}) are free ones of loopback, chosen once and kept beside the data.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from gauge.processes import cpu_s_of, resident_mb
from wikibench.whole_files import write_whole

from .guard import QuotaGroup, why_no_quota
from .plan import FILL, ExperimentError, Json, Known, command_of, unknown_words

READY_S: Final = 120.0
GRACE_S: Final = 30.0  # of a program that was asked to end
FREE_S: Final = 40.0  # in which a role of a killed experiment has left its port
LOG_LINES: Final = 5  # of a role that does not start, in the error
METRICS_BYTES: Final = 4 << 20
Counts = float | dict[str, float]
_POLL_S: Final = 0.05
_PORT: Final = re.compile(r"\{port\.(\w+)\}")
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class SystemFailedError(ExperimentError):
    """A system did not start, did not fill, or ended."""


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    start: tuple[str, ...]
    ready: Mapping[str, str]
    stop: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    quota: float | str = 0.0  # share of a core; 0: all it wants
    ready_s: float = READY_S
    members: tuple[str, ...] = ()  # prints JSON with a "pid" of each process that has a share of its own in a load
    member_count: str = "1"
    member_quota: float | str = 0.0
    pids: str = ""  # files with the ids of processes that the start command leaves behind


@dataclass(frozen=True, slots=True)
class System:
    """A system as its file has it."""

    name: str
    file: str
    title: str
    url: str
    titles: str = ""
    needs: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    prepare: tuple[tuple[str, ...], ...] = ()
    fill: tuple[tuple[str, ...], ...] = ()
    versions: tuple[tuple[str, ...], ...] = ()
    roles: tuple[Role, ...] = ()
    counters: tuple[Mapping[str, str], ...] = ()
    fill_s: float = 60.0
    fill_page_s: float = 0.0

    def fill_estimate_s(self, words: Mapping[str, Any]) -> float:
        """Return the seconds that filling takes; ``words`` are those of the experiment's size."""
        return self.fill_s + self.fill_page_s * int(words.get("pages", 0))


def parse_system(name: str, file: str, found: Mapping[str, Any]) -> System:
    """(pure) Return the system of a file's TOML.  Raises ExperimentError."""
    if unknown := sorted(found.keys() - System.__dataclass_fields__.keys()):
        raise ExperimentError(file, f"it has {', '.join(unknown)}, which no system has")
    if not found.get("url"):
        raise ExperimentError(file, "it has no url: where does the wiki answer?")
    roles = []
    for one in found.get("roles", ()):
        if unknown := sorted(one.keys() - Role.__dataclass_fields__.keys()):
            raise ExperimentError(file, f"a role has {', '.join(unknown)}")
        if not one.get("name") or not one.get("start") or not one.get("ready"):
            raise ExperimentError(file, "a role needs a name, a start command and how it is ready")
        roles.append(
            Role(**{**one, **{key: tuple(one[key]) for key in ("start", "stop", "cpus", "members") if key in one}})
        )
    steps = {key: tuple(tuple(step) for step in found.get(key, ())) for key in ("prepare", "fill", "versions")}
    counters = tuple(found.get("counters", ()))
    plain = {key: found[key] for key in found if key not in ("roles", "counters", *steps)}
    return System(name, file, **{"title": name, **plain, **steps, "roles": tuple(roles), "counters": counters})


def read_system(name: str, folder: Path) -> System:
    """Read the system of that name, shipped or a path that ends in .toml; ``NAME:KEY=VALUE`` sets a word of it."""
    name, *settings = name.split(":")
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        shipped = ", ".join(sorted(one.stem for one in folder.glob("*.toml")))
        raise ExperimentError(name, f"no such system; shipped are {shipped}, or give a file ending in .toml") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(str(path), f"not TOML: {error}") from error
    system = parse_system(path.stem, path.name, found)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in system.words:
            raise ExperimentError(path.name, f"{setting!r} sets none of its words: {', '.join(system.words) or 'none'}")
        words = {**system.words, key: value}
        system = replace(system, name=f"{system.name}-{value}", title=f"{system.title}, {key} {value}", words=words)
    return system


def port_names(system: System) -> list[str]:
    """(pure) Return the names of the ports that the system's words have."""
    return sorted(set(_PORT.findall(json.dumps(_plain(system)))))


def _plain(system: System) -> Json:
    roles = [[role.start, role.stop, dict(role.ready)] for role in system.roles]
    more = [system.url, system.titles, dict(system.words), {key: list(value) for key, value in system.lists.items()}]
    return {"all": [roles, more, system.prepare, system.fill, [dict(one) for one in system.counters]]}


def ports_in(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Return the ports that the folder keeps, chosen now if it has none."""
    kept = folder / "ports.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    if missing := [name for name in names if name not in found]:
        with ExitStack() as stack:
            for name in missing:
                made = stack.enter_context(socket.socket())
                made.bind(("127.0.0.1", 0))
                found[name] = made.getsockname()[1]
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(kept, json.dumps(found))
    return {name: found[name] for name in names}


@dataclass(frozen=True, slots=True)
class Place:
    """A system with its folder and the values of its words."""

    system: System
    folder: Path
    known: Known

    @classmethod
    def of(cls, system: System, folder: Path, size: Mapping[str, str], given: Mapping[str, str]) -> Place:
        """Choose ports and put every word in place.  Raises ExperimentError for a value or word that is not known."""
        if missing := [name for name in system.needs if name not in given]:
            what = "; ".join(f"--set {name}=… ({system.needs[name]})" for name in missing)
            raise ExperimentError(system.file, f"system {system.name} needs {what}")
        ports = ports_in(folder, port_names(system))
        texts = {
            **size,
            **{f"port.{name}": str(port) for name, port in ports.items()},
            "folder": str(folder),
            "python": sys.executable,
            "titles": str(folder / "titles.txt"),
        }
        for key, value in {**system.words, **given}.items():
            texts[key] = _put(system, value, Known(texts))
        texts["url"] = _put(system, system.url, Known(texts))
        lists = {"wikibench": [sys.executable, "-m", "wikibench.cli"]}
        for key, words in system.lists.items():
            lists[key] = [_put(system, word, Known(texts)) for word in words]
        known = Known(texts, lists)
        steps = [*system.prepare, *system.fill, *(role.start for role in system.roles)]
        for word in unknown_words(steps, [*texts, *lists]):
            raise ExperimentError(system.file, f"{{{word}}} is no word of system {system.name}")
        return cls(system, folder, known)

    @property
    def url(self) -> str:
        return self.known.texts["url"]

    def fetch_titles(self) -> int:
        """Have the page names in the file ``titles``; return their number."""
        source, path = _put(self.system, self.system.titles, self.known), Path(self.known.texts["titles"])
        if source.startswith("http"):
            with _OPENER.open(source, timeout=60) as answer:
                path.write_bytes(answer.read())
        elif source:
            path.write_bytes(Path(source).read_bytes())
        if not path.exists():
            raise SystemFailedError(self.system.file, f"no page names: {path} was not written by a step of fill")
        return len(path.read_text("utf-8").splitlines())

    def counted(self) -> dict[str, Counts]:
        """Return the system's counters, as far as they can be read; one with a label has a figure for each value."""
        found: dict[str, Counts] = {}
        for counter in self.system.counters:
            with suppress(OSError, ValueError, KeyError):
                with _OPENER.open(_put(self.system, counter["url"], self.known), timeout=10) as answer:
                    text = answer.read(METRICS_BYTES).decode("utf-8", "replace")
                by_value = metrics_in(text, counter["metric"], counter.get("by", ""))
                found[counter["name"]] = by_value if "by" in counter else by_value[""]
        return found


def metrics_in(text: str, name: str, label: str = "") -> dict[str, float]:
    """(pure) Return the sums of a metric's samples in Prometheus' text, by the value of a label; without one under "".

    Raises KeyError if the metric has no sample.
    """
    found: dict[str, float] = {}
    for labels, value in re.findall(rf"^{re.escape(name)}(?:\{{([^\n]*)\}})? (\S+)$", text, re.M):
        match = re.search(rf'(?:^|,){re.escape(label)}="([^"]*)"', labels) if label else None
        key = match[1] if match else ""
        found[key] = found.get(key, 0.0) + float(value)
    if not found:
        raise KeyError(name)
    return found


def counted_since(before: Mapping[str, Counts], after: Mapping[str, Counts]) -> dict[str, Counts]:
    """(pure) Return by how much the counters grew, as far as both have them."""
    found: dict[str, Counts] = {}
    for name, now in after.items():
        was = before.get(name)
        if isinstance(now, dict) and isinstance(was, dict):
            found[name] = {value: count - was.get(value, 0.0) for value, count in now.items()}
        elif not isinstance(now, dict) and not isinstance(was, dict) and was is not None:
            found[name] = now - was
    return found


def _put(system: System, word: str, known: Known) -> str:
    try:
        (made,) = command_of([word], known)
    except (KeyError, ValueError) as error:
        raise ExperimentError(system.file, f"{error} is no word of system {system.name}") from error
    return made


class Running:
    """The processes of a system that has started."""

    def __init__(self, place: Place, guards: Mapping[str, subprocess.Popen[bytes]], why_uncapped: str) -> None:
        self.why_uncapped = why_uncapped  # why its quotas do not bound it; empty if they do, or if it has none
        self._place = place
        self._guards = guards

    def cpu_s(self) -> dict[str, float]:
        """Return the seconds of processor time of each role."""
        return {name: sum(cpu_s_of(pids)) for name, pids in self._pids().items()}

    def memory_mb(self) -> dict[str, float]:
        return {name: round(resident_mb(pids), 1) for name, pids in self._pids().items()}

    def ended(self) -> str:
        """Return the name of a role that has ended; an empty text if none has."""
        return next((name for name, guard in self._guards.items() if guard.poll() is not None), "")

    def _pids(self) -> dict[str, list[int]]:
        found = {name: [guard.pid] for name, guard in self._guards.items()}
        for role in self._place.system.roles:
            if role.pids:
                pattern = Path(_put(self._place.system, role.pids, self._place.known))
                found[role.name] += [int(one.read_text()) for one in pattern.parent.glob(pattern.name)]
        return found


@contextmanager
def running(place: Place, label: str) -> Iterator[Running]:
    """Start the roles in order, each once the one before it is ready; end them in the opposite order.

    While the system is filled its roles have all they want: a share of a core is for the loads.
    """
    guards: dict[str, subprocess.Popen[bytes]] = {}
    groups: list[QuotaGroup] = []
    quotas = [one for role in place.system.roles for one in (role.quota, role.member_quota)] if label != FILL else []
    is_capped = any(_quota(place, one) for one in quotas)
    why_uncapped = why_no_quota() if is_capped else ""
    for port in port_names(place.system):
        _require_free(place, int(place.known.texts[f"port.{port}"]))
    try:
        for role in place.system.roles:
            log = place.folder / f"{role.name}.log"
            log.unlink(missing_ok=True)
            guards[role.name] = _start(place, role, log, label, is_capped=is_capped and not why_uncapped)
            _wait_until_ready(place, role, guards[role.name], log)
            if role.members and label != FILL:
                pids = _members(place, role)
                if not why_uncapped:
                    _bound_members(place, role, pids, groups)
        yield Running(place, guards, why_uncapped)
    finally:
        for guard in reversed(guards.values()):
            end_guard(guard)
        for group in groups:
            group.remove()


def _quota(place: Place, quota: float | str) -> float:
    return float(_put(place.system, str(quota), place.known))


def _members(place: Place, role: Role) -> list[int]:
    """Return the processes of the role's members, once all of them are there."""
    wanted, until_s = int(_put(place.system, role.member_count, place.known)), time.monotonic() + role.ready_s
    while True:
        done = subprocess.run(
            command_of(role.members, place.known), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        pids = sorted({int(one) for one in re.findall(r'"pid": *([1-9]\d*)', done.stdout)})
        if len(pids) >= wanted:
            return pids
        if time.monotonic() > until_s:
            why = f"role {role.name} has {len(pids)} of {wanted} members: {done.stderr.strip() or done.stdout.strip()}"
            raise SystemFailedError(place.system.file, why)
        time.sleep(_POLL_S)


def _bound_members(place: Place, role: Role, pids: Sequence[int], groups: list[QuotaGroup]) -> None:
    """Take each member of the role into a group of its own, with its share of a core."""
    for number, pid in enumerate(pids):
        group = QuotaGroup(f"wikibench-{os.getpid()}-{role.name}-{number}", _quota(place, role.member_quota))
        group.make()
        groups.append(group)
        group.add(pid)


def _require_free(place: Place, port: int) -> None:
    until_s = time.monotonic() + FREE_S
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if time.monotonic() > until_s:
                    why = f"port {port} is taken: end what uses it, or delete {place.folder / 'ports.json'}"
                    raise SystemFailedError(place.system.file, why) from error
            else:
                return
        time.sleep(_POLL_S)


def _start(place: Place, role: Role, log: Path, label: str, *, is_capped: bool) -> subprocess.Popen[bytes]:
    quota = _quota(place, role.quota) if is_capped else 0.0
    given = {
        "start": command_of(role.start, place.known),
        "stop": command_of(role.stop, place.known),
        "cpus": sorted(set(role.cpus) & os.sched_getaffinity(0)),
        "quota": quota,
        "group": f"wikibench-{os.getpid()}-{label}-{role.name}",
        "log": str(log),
        "grace_s": GRACE_S,
    }
    return start_guard(given)


def start_guard(given: Mapping[str, object]) -> subprocess.Popen[bytes]:
    """Start a program under a guard (``guard`` has the keys), which ends it once its own standard input is closed."""
    words = [sys.executable, "-m", "wikibench.experiments.guard", json.dumps(given)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)


def end_guard(guard: subprocess.Popen[bytes]) -> None:
    assert guard.stdin is not None
    guard.stdin.close()
    guard.wait()


def _wait_until_ready(place: Place, role: Role, guard: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + role.ready_s
    ready = {key: _put(place.system, value, place.known) for key, value in role.ready.items()}
    while not _is_ready(ready, log):
        has_ended = guard.poll() is not None
        if has_ended or time.monotonic() > until_s:
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
            why = f"ended with status {guard.returncode}" if has_ended else f"was not ready in {role.ready_s:g} s"
            said = "; it said: " + " | ".join(lines) if lines else ""
            raise SystemFailedError(place.system.file, f"role {role.name} {why}{said} ({log})")
        time.sleep(_POLL_S)


def _is_ready(ready: Mapping[str, str], log: Path) -> bool:
    if "line" in ready:
        return log.exists() and re.search(ready["line"], log.read_text(errors="replace"), re.M) is not None
    if "address" in ready:
        host, _, port = ready["address"].rpartition(":")
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return True
        return False
    with suppress(OSError), _OPENER.open(ready["url"], timeout=5):
        return True
    return False
