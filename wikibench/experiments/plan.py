"""(pure) An experiment's file: systems, loads, sizes and tables; and the cells that it makes, in order.

    file     title, about, systems = ["columnar", ...]
             [sizes.quick] pages = 1000, ...           words for commands: {pages}
             [[loads]] name, title, seconds = {quick = 60, ...}, steps = [[program, word, ...], ...], result
             [[tables]] see ``tables``
    result   the file in which a step leaves its JSON, "{cell}/x.json", or several: {over = "...", after = "..."}
    word     {python} {wikibench} {url} {titles} {folder} {cell} {rewrite} {port.NAME} and the words of the size and the
             system; {T3:rate_per_s*0.9} is a figure of the same system's cell T3, times 0.9
    cell     one load of one system.  Each system is filled first; then the systems take turns, and the order of
             the systems is reversed with every load, so that other work of the machine meets all of them alike

Invariants:
    I1. The same file, systems and size give the same cells in the same order.
    I2. A cell stands after every cell whose figures its words name.
    I3. A step has no word that is not known, or it is refused before the first step runs.

Knows nothing of files, processes and clocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from wikibench.errors import WikibenchError

FILL: Final = "fill"
MOST_CELLS: Final = 1_000  # of one experiment: a result is a file each
SIZES: Final = ("quick", "default", "full")

_WORD: Final = re.compile(r"\{([A-Za-z_]\w*(?:\.\w+)?)\}")
_FIGURE: Final = re.compile(r"\{(\w+):([\w.]+)(?:\*(\d+(?:\.\d+)?))?\}")
Json = dict[str, Any]
Words = Mapping[str, str]


class ExperimentError(WikibenchError):
    """The caller must repair the file of an experiment or a system, or give a value that it needs."""

    def __init__(self, file: str, why: str) -> None:
        self.file = file
        self.why = why
        super().__init__(f"{file}: {why}")


class MissingFigureError(WikibenchError):
    """A cell needs a figure of another cell that has none."""

    def __init__(self, load: str, path: str) -> None:
        self.load = load
        self.path = path
        super().__init__(f"it needs {path} of {load}, which has none")


@dataclass(frozen=True, slots=True)
class Load:
    """A load: its steps are run in order against a system, and the last one's JSON has the figures."""

    name: str
    title: str
    steps: tuple[tuple[str, ...], ...]
    results: Mapping[str, str]  # files in which steps leave JSON, by name; without a name: all figures
    seconds: Mapping[str, float]  # by size; an estimate
    statuses: tuple[int, ...] = (0, 1, 3)  # with which a step may end: met, missed, not valid
    systems: tuple[str, ...] = ()  # those alone; empty means all
    sizes: tuple[str, ...] = SIZES
    without_system: bool = False  # a program that starts what it measures itself: one cell


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment as its file has it."""

    file: str
    title: str
    about: str
    systems: tuple[str, ...]  # unless the user names others
    sizes: Mapping[str, Mapping[str, str]]
    loads: tuple[Load, ...]
    tables: tuple[Json, ...] = ()
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Cell:
    system: str
    load: Load | None  # None: fill the system
    seconds: float
    number: int = 1  # of the repetition

    @property
    def name(self) -> str:
        load = FILL if self.load is None else self.load.name
        again = f".{self.number}" if self.number > 1 else ""
        return f"{load}.{self.system}{again}" if self.system else f"{load}{again}"


@dataclass(frozen=True, slots=True)
class Known:
    """The values of words of a command: texts, lists of words, and figures of other cells."""

    texts: Words
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    figures: Mapping[str, Json] = field(default_factory=dict)  # by load


def parse_experiment(file: str, found: Mapping[str, Any]) -> Experiment:
    """Return the experiment of a file's TOML.  Raises ExperimentError."""
    _only(file, "the file", found, {"title", "about", "systems", "sizes", "loads", "tables", "repeats"})
    sizes = {name: {key: str(value) for key, value in words.items()} for name, words in found.get("sizes", {}).items()}
    if not sizes:
        raise ExperimentError(file, "it has no [sizes.NAME]: give at least one, such as [sizes.quick]")
    loads = tuple(_load(file, one, tuple(sizes)) for one in found.get("loads", ()))
    if not loads:
        raise ExperimentError(file, "it has no [[loads]]: what is to be measured?")
    names = [load.name for load in loads]
    for at, load in enumerate(loads):
        if load.name in names[:at] or load.name == FILL:
            raise ExperimentError(file, f"the name {load.name} of a load is taken")
        for other, _ in named_figures(load):
            if other not in names[:at]:
                raise ExperimentError(file, f"load {load.name} needs figures of {other}, which is no earlier load")
    return Experiment(
        file,
        str(found.get("title", file)),
        str(found.get("about", "")),
        tuple(found.get("systems", ())),
        sizes,
        loads,
        tuple(found.get("tables", ())),
        int(found.get("repeats", 1)),
    )


def _only(file: str, what: str, found: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(found.keys() - known):
        raise ExperimentError(file, f"{what} has {', '.join(unknown)}; it may have {', '.join(sorted(known))}")


def _load(file: str, found: Mapping[str, Any], sizes: tuple[str, ...]) -> Load:
    name = str(found.get("name", ""))
    _only(file, f"load {name}", found, {"result", *Load.__dataclass_fields__} - {"results"})
    if not re.fullmatch(r"\w+", name):
        raise ExperimentError(file, f"a load needs a name of letters and digits, not {name!r}")
    seconds = found.get("seconds", {})
    if missing := [size for size in found.get("sizes", sizes) if size not in seconds]:
        raise ExperimentError(file, f"load {name} does not say how many seconds size {missing[0]} takes")
    if not found.get("steps"):
        raise ExperimentError(file, f"load {name} has no steps")
    return Load(
        name,
        str(found.get("title", name)),
        tuple(tuple(str(word) for word in step) for step in found["steps"]),
        dict(result) if isinstance(result := found.get("result", {}), Mapping) else {"": str(result)},
        {size: float(value) for size, value in seconds.items()},
        tuple(found.get("statuses", (0, 1, 3))),
        tuple(found.get("systems", ())),
        tuple(found.get("sizes", sizes)),
        bool(found.get("without_system", False)),
    )


def named_figures(load: Load) -> list[tuple[str, str]]:
    """Return (load, path) of the figures that a load's words name."""
    return [(one[1], one[2]) for step in load.steps for word in step for one in _FIGURE.finditer(word)]


def cells_of(experiment: Experiment, fill_s: Mapping[str, float], size: str) -> list[Cell]:
    """Return the cells in the order in which they run (I1, I2).

    ``fill_s`` has the systems in order, and the seconds that filling each takes.
    """
    if size not in experiment.sizes:
        raise ExperimentError(experiment.file, f"it has no size {size}, only {', '.join(experiment.sizes)}")
    systems = list(fill_s)
    loads = [load for load in experiment.loads if size in load.sizes]
    is_alone = all(load.without_system for load in loads)
    cells = [] if is_alone else [Cell(one, None, seconds) for one, seconds in fill_s.items()]
    for number in range(1, experiment.repeats + 1):
        for at, load in enumerate(loads):
            seconds = load.seconds[size]
            if load.without_system:
                cells.append(Cell("", load, seconds, number))
                continue
            mine = [one for one in systems if not load.systems or one in load.systems]
            in_turn = mine if (at + number) % 2 else list(reversed(mine))
            cells += [Cell(one, load, seconds, number) for one in in_turn]
    if len(cells) > MOST_CELLS:
        raise ExperimentError(experiment.file, f"{len(cells)} cells are more than {MOST_CELLS}")
    return cells


def figure_at(found: Any, path: str) -> Any:
    """Return what stands at ``rows.0.p50_ms``, or ``rows.kind=page.p50_ms``, of a JSON; None if nothing does."""
    for part in path.split("."):
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list) and "=" in part:
            key, _, wanted = part.partition("=")
            found = next((one for one in found if isinstance(one, Mapping) and str(one.get(key)) == wanted), None)
        elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def filled_in(word: str, known: Known) -> list[str]:
    """Return the word with its words and figures in place; a list only stands alone.

    Raises MissingFigureError for a figure without a value, and KeyError for a word that is not known.
    """
    alone = _WORD.fullmatch(word)
    if alone is not None and alone[1] in known.lists:
        return list(known.lists[alone[1]])

    def figure(match: re.Match[str]) -> str:
        value = figure_at(known.figures.get(match[1], {}), match[2])
        if not isinstance(value, int | float) or not value:
            raise MissingFigureError(match[1], match[2])
        return f"{value * float(match[3] or 1):.6g}"

    return [_WORD.sub(lambda match: known.texts[match[1]], _FIGURE.sub(figure, word))]


def command_of(step: Sequence[str], known: Known) -> list[str]:
    """Return the step's words with everything in place."""
    return [made for word in step for made in filled_in(word, known)]


def unknown_words(steps: Sequence[Sequence[str]], names: Sequence[str]) -> Iterator[str]:
    """Yield the words of the steps that are not known (I3)."""
    for step in steps:
        for word in step:
            for match in _WORD.finditer(_FIGURE.sub("", word)):
                if match[1] not in names:
                    yield match[1]
