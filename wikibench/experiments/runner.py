"""The runner of an experiment: each cell leaves a file, so an experiment that was stopped goes on where it was.

    OUT/experiment.json            what this folder belongs to; another experiment is refused
    OUT/cells/T3.columnar.json     the result of a cell, written whole or not at all
    OUT/systems/columnar-quick/    a system's folder: data, logs, ports; ``filled`` once its pages are in
    OUT/steps/T3.columnar/         what a cell's steps write

Invariants:
    R1. A cell that has a good result never runs again; a cell that failed runs again with the next start.
    R2. Whenever the runner is killed, the next start goes on: no file is half written, a system that was not filled to
        its end is filled anew, and the guards have ended its roles (``guard``).
    R3. Systems run one at a time, so they do not disturb each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from gauge.machine import busy_s, contention, environment
from wikibench.whole_files import write_whole

from .plan import (
    Cell,
    Experiment,
    ExperimentError,
    Json,
    Known,
    MissingFigureError,
    command_of,
    parse_experiment,
    unknown_words,
)
from .system import Place, Running, System, SystemFailedError, counted_since, end_guard, running, start_guard

CELL: Final = "wikibench-cell-1"
STEP_TIMES: Final = 20.0  # a step that lasts so many times its estimate, and STEP_LEAST_S, is ended
STEP_LEAST_S: Final = 600.0
STEP_GRACE_S: Final = 10.0
WHY_CHARS: Final = 500


def read_experiment(name: str, folder: Path) -> tuple[Experiment, str]:
    """Read the experiment of that name, shipped or a path that ends in .toml; return it with its text's digest."""
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    try:
        data = path.read_bytes()
        found = tomllib.loads(data.decode("utf-8"))
    except FileNotFoundError as error:
        shipped = ", ".join(sorted(one.stem for one in folder.glob("*.toml")))
        raise ExperimentError(name, f"no such experiment; shipped are {shipped}, or give a file .toml") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(str(path), f"not TOML: {error}") from error
    return parse_experiment(path.name, found), hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Order:
    """An order to run an experiment, and the folder of its files."""

    experiment: Experiment
    digest: str
    size: str
    systems: tuple[System, ...]
    given: Mapping[str, str]
    out: Path
    budget_s: float | None = None

    @property
    def words(self) -> Mapping[str, str]:
        return self.experiment.sizes[self.size]

    def identity(self, system: System) -> str:
        """Return a digest of all on which the system's results depend: its file and the values that it is given."""
        others = {name for other in self.systems if other.name != system.name for name in other.needs}
        given = {name: value for name, value in self.given.items() if name in system.needs or name not in others}
        text = json.dumps([asdict(system), given], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class Runner:
    """Runs cells in order, without those that have a result."""

    order: Order
    say: Callable[[str], None]
    now_s: Callable[[], float] = time.monotonic
    _lock: IO[str] | None = None  # keeps the folder while the runner lives
    results: dict[str, Json] = field(default_factory=dict)  # by the cell's name
    _places: dict[str, Place] = field(default_factory=dict)

    def open(self) -> None:
        """Take the folder, and read the results that it has.  Raises ExperimentError if it is another experiment's."""
        order = self.order
        (order.out / "cells").mkdir(parents=True, exist_ok=True)
        self._lock = (order.out / "lock").open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ExperimentError(str(order.out), "another run uses this folder: wait for its end") from error
        belongs: Json = {"experiment": order.experiment.file, "size": order.size, "digest": order.digest}
        kept = order.out / "experiment.json"
        before = json.loads(kept.read_text("utf-8")) if kept.exists() else dict(belongs)
        known: dict[str, str] = before.pop("systems", {})
        if before != belongs:
            raise ExperimentError(str(order.out), "it has results of another experiment or size; give another folder")
        mine = {system.name: order.identity(system) for system in order.systems}
        if changed := [name for name, identity in mine.items() if known.get(name, identity) != identity]:
            why = f"it has results of {changed[0]} from another file, or with other values of --set"
            raise ExperimentError(str(order.out), f"{why}; give another folder")
        _write(kept, {**belongs, "systems": {**known, **mine}})
        for path in sorted((order.out / "cells").glob("*.json")):
            self.results[path.stem] = json.loads(path.read_text("utf-8"))
        for system in order.systems:
            folder = (order.out / "systems" / f"{system.name}-{order.size}").absolute()
            self._places[system.name] = place = Place.of(system, folder, order.words, order.given)
            self._require_words([load.steps for load in order.experiment.loads if _is_for(load, system.name)], place)

    def _require_words(self, steps: Sequence[Sequence[Sequence[str]]], place: Place) -> None:
        names = [*place.known.texts, *place.known.lists, "cell", "titles"]
        for word in (one for of_load in steps for one in unknown_words(of_load, names)):
            raise ExperimentError(self.order.experiment.file, f"{{{word}}} is no word of system {place.system.name}")

    def run(self, cells: Sequence[Cell]) -> str:
        """Run what has no good result; return "complete", "failed" or "budget"."""
        began_s = self.now_s()
        for at, cell in enumerate(cells):
            if self.results.get(cell.name, {}).get("ok"):
                continue
            spent_s = self.now_s() - began_s
            if self.order.budget_s is not None and spent_s + cell.seconds > self.order.budget_s:
                self.say(f"{len(cells) - at} cells are left over; the same command goes on with {cell.name}")
                return "budget"
            self.say(f"{at + 1} of {len(cells)}: {cell.name} (about {cell.seconds:.0f} s)")
            found = self._cell(cell)
            if not found["ok"]:
                self.say(f"  failed: {found['why']}")
            _write(self.order.out / "cells" / f"{cell.name}.json", found)
            self.results[cell.name] = found
        return "complete" if all(self.results[cell.name]["ok"] for cell in cells) else "failed"

    def _cell(self, cell: Cell) -> Json:
        began_s = self.now_s()
        found: Json = {"format": CELL, "system": cell.system, "load": "fill" if cell.load is None else cell.load.name}
        found |= {"number": cell.number, "size": self.order.size, "environment": environment()}
        try:
            if cell.load is None:
                found |= self._filled(self._places[cell.system], cell.seconds)
            elif cell.load.without_system:
                found |= self._measured(cell, None, None)
            else:
                place = self._places[cell.system]
                if not (place.folder / "filled").exists():
                    raise SystemFailedError(place.system.file, "its pages are not in: see its cell fill")
                with running(place, cell.name) as roles:
                    found |= self._measured(cell, place, roles)
            found |= {"ok": True, "why": ""}
        except (ExperimentError, MissingFigureError, OSError, subprocess.SubprocessError) as error:
            found |= {"ok": False, "why": str(error)[:WHY_CHARS]}
        return {**found, "lasted_s": round(self.now_s() - began_s, 2)}

    def _filled(self, place: Place, seconds: float) -> Json:
        """Fill a system from nothing, and note that it is filled."""
        ports = place.folder / "ports.json"
        kept = ports.read_text("utf-8") if ports.exists() else "{}"
        if place.folder.exists():
            shutil.rmtree(place.folder)  # what a killed filling has left
        place.folder.mkdir(parents=True)
        write_whole(ports, kept)
        began_s = self.now_s()
        log = place.folder / "fill.log"
        for step in place.system.prepare:
            self._step(command_of(step, place.known), log, seconds)
        with running(place, "fill"):
            for step in place.system.fill:
                self._step(command_of(step, place.known), log, seconds)
            pages = place.fetch_titles()
        figures = {"pages": pages, "seconds": round(self.now_s() - began_s, 2), "versions": _versions(place)}
        (place.folder / "filled").touch()
        return {"figures": figures}

    def _measured(self, cell: Cell, place: Place | None, roles: Running | None) -> Json:
        assert cell.load is not None
        folder = (self.order.out / "steps" / cell.name).absolute()
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        known = self._known(cell, place, folder)
        counted, cpu_s = place.counted() if place else {}, roles.cpu_s() if roles else {}
        contended = contention()
        began_s, worked_s, own_s = self.now_s(), busy_s(), _children_s()
        statuses, commands = [], []
        for step in cell.load.steps:
            if words := command_of(step, known):
                statuses.append(self._step(words, folder / "steps.log", cell.seconds, cell.load.statuses))
                commands.append(words)
        if roles is not None and (ended := roles.ended()):
            raise SystemFailedError(cell.system, f"role {ended} ended during the load")
        after = place.counted() if place else {}
        memory, now = (roles.memory_mb(), roles.cpu_s()) if roles else ({}, {})
        cores = os.cpu_count() or 1
        steps_s, cores_s = _children_s() - own_s, (self.now_s() - began_s) * cores
        others_s = busy_s() - worked_s - steps_s - sum(now[name] - cpu_s[name] for name in cpu_s)
        return {
            "statuses": statuses,
            "commands": commands,
            "figures": self._figures(cell, known),
            "steps_cpu_s": round(steps_s, 3),
            "others_cpu_share": round(max(others_s, 0.0) / max(cores_s, 1e-9), 3),
            "contention": contention().shares_since(contended, cores_s / cores, cores),
            "roles": {name: {"cpu_s": round(now[name] - cpu_s[name], 3), "memory_mb": memory[name]} for name in cpu_s},
            "counters": counted_since(counted, after),
            "why_uncapped": roles.why_uncapped if roles else "",
        }

    def _known(self, cell: Cell, place: Place | None, folder: Path) -> Known:
        if place is None:
            texts = {**self.order.words, **self.order.given, "python": sys.executable, "cell": str(folder)}
            return Known(texts, {"wikibench": [sys.executable, "-m", "wikibench.cli"]}, {})
        figures = {
            found["load"]: found.get("figures", {})
            for found in self.results.values()
            if found["system"] == cell.system and found.get("ok")
        }
        return Known({**place.known.texts, "cell": str(folder)}, place.known.lists, figures)

    def _figures(self, cell: Cell, known: Known) -> Any:
        assert cell.load is not None
        found: Json = {}
        for key, word in cell.load.results.items():
            (name,) = command_of([word], known)
            try:
                found[key] = json.loads(Path(name).read_text("utf-8"))
            except (OSError, ValueError) as error:
                log = Path(name).parent / "steps.log"
                why = f"its steps left no JSON in {name}: {_last_line(log)} (all of it: {log})"
                raise SystemFailedError(cell.name, why) from error
        return found.get("", found)

    def _step(self, words: Sequence[str], log: Path, seconds: float, statuses: Sequence[int] = (0,)) -> int:
        """Run a command to its end, and return its status.  Raises SystemFailedError for another status."""
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(words)}\n")
        most_s = STEP_LEAST_S + STEP_TIMES * seconds
        guard = start_guard({"start": list(words), "log": str(log), "grace_s": STEP_GRACE_S})
        try:
            status = guard.wait(most_s)
        except subprocess.TimeoutExpired as error:
            raise SystemFailedError(words[0], f"was ended after {most_s:.0f} s (its output: {log})") from error
        finally:
            end_guard(guard)
        if status not in statuses:
            raise SystemFailedError(words[0], f"ended with status {status}: {_last_line(log)} (all of it: {log})")
        return status


def _is_for(load: Any, system: str) -> bool:
    return not load.without_system and (not load.systems or system in load.systems)


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()] if log.exists() else []
    return lines[-1] if lines else "no word"


def _versions(place: Place) -> list[str]:
    found = []
    for step in place.system.versions:
        done = subprocess.run(
            command_of(step, place.known), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        lines = (done.stdout or done.stderr).strip().splitlines()
        found.append(" ".join(lines[0].split()) if lines else f"{step[-1]}: no version")
    return found


def _write(path: Path, found: Any) -> None:
    """Write the whole file, or leave what was there (R2)."""
    write_whole(path, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system
