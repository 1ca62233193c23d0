"""(pure) The tables of an experiment: figures of cells beside reference figures, as values, Markdown and HTML.

    [[tables]]   title, note, columns, each, reference, aims
    columns      {head, value = "T3.figures.rate_per_s", per, times, digits, missing}: a figure of a cell's result,
                 divided by another one, times a number; ``missing`` stands where it has none;
                 ``*`` stands for the sum of all: "T3.roles.*.cpu_s"
    each         "T2.figures.rows": a row for each element of this list, whose columns have paths within it
    systems      names, or patterns such as "servers-[0-9]*": the table has those alone, and is left out if none is
                 measured.  A column with ``of_first`` is divided by that of the first row
    ratios       {each = "E.figures.loads", keys = ["load"], of = "variant", beside = "sync", rounds = "rounds"}: a
                 row for each element that is not the one beside, with the ratios to that one of the same keys, round by
                 round: their geometric mean, and the t interval of 90 % of its logarithm
    intervals    {each = "E.figures.loads", only = {workload = "W5"}, names = ["variant"], rounds = "rounds"}: a row for
                 each element that has these values, with its figures round by round: their geometric mean and interval
                 as above; a column with ``sum`` is the sum of the rounds
    reference    rows of words from somewhere else, first their name; they are printed, never reckoned with
    aims         {column = "views/s", systems = ["columnar*"], of = 75, words = "times the thesis's; aim: 15"}: a note
                 with the figure of each such row, divided by ``of``, before the words
    plot         {y = "views/s", x = "clients"}: a line for each system over the column x; without x a bar for each row,
                 references that are numbers too

A cell that failed, was not valid, or had much other work beside it, is said in a note below its table, or at the top
of the page if no table names its load.  Figures of several repetitions are medians.

Knows nothing of files.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from math import exp, log
from statistics import fmean, median, stdev
from typing import Any, Final

from gauge.confidence import t_quantile
from wikibench.limits import OTHERS_CPU

from .plan import FILL, ExperimentError, Json, figure_at

FORMAT: Final = "wikibench-experiment-1"
NONE: Final = "–"
NOT_VALID: Final = 3  # the status of a step
DIGITS: Final = 3
_KEYS: Final = {"title", "note", "columns", "each", "ratios", "intervals", "reference", "systems", "plot", "aims"}
_AIM_KEYS: Final = {"column", "systems", "of", "words"}
_DATE: Final = "%Y-%m-%d %H:%M:%S UTC"  # of an environment
_PLOT_KEYS: Final = {"x", "y"}
ENDS: Final = 0.95  # of Student's t: an interval of 90 %
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #22262b; --faint: #a9b0b8;
  --s1: #1f6fb4; --s2: #c45f00; --s3: #b3261e; --s4: #4f7a28; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --faint: #6a737c; --s1: #66b2f0; --s2: #f0a04b; --s3: #ff8a80; --s4: #9ccc65; } }
figure { margin: 0; overflow-x: auto; }
svg { width: 100%; min-width: 30rem; max-width: 48rem; height: auto; display: block; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 0.5rem 0 1rem; display: block; overflow-x: auto; }
th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid #8886; text-align: right; }
td { font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
tr.reference td { font-style: italic; opacity: 0.8; }
pre { white-space: pre-wrap; font-size: 0.85rem; }
summary { font-weight: bold; cursor: pointer; }
@media print {
  body { font-size: 11pt; max-width: none; margin: 0; padding: 0; }
  h1, h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  table { display: table; font-size: 9pt; }
  th, td { padding: 0.15rem 0.35rem; }
  details { display: none; } }
"""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    cells: tuple[str, ...]
    values: tuple[float | None, ...] = ()
    is_reference: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    plot: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> dict[str, list[tuple[float, float]]]:
        """Return the points of the plot's line of each name; rows without both figures have none."""
        x, y = (self.head.index(self.plot[name]) - 1 for name in ("x", "y"))
        found: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows:
            if not row.is_reference and (at := row.values[x]) is not None and (value := row.values[y]) is not None:
                found.setdefault(row.name, []).append((at, value))
        return {name: sorted(points) for name, points in found.items()}

    def bars(self) -> list[tuple[str, float, bool]]:
        """Return name and figure of each row that has one, and whether it is a reference."""
        at = self.head.index(self.plot["y"]) - 1
        found = []
        for row in self.rows:
            value = _number(row.cells[at]) if row.is_reference else row.values[at]
            if value is not None:
                found.append((row.name, value, row.is_reference))
        return found


@dataclass(frozen=True, slots=True)
class Page:
    """An experiment's results in words and tables."""

    title: str
    about: str
    facts: tuple[tuple[str, str], ...]  # machine, date, versions
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()  # of cells that are in no table


def check_tables(file: str, tables: Sequence[Json], loads: Sequence[str]) -> None:
    """Raise ExperimentError for a table that names no load of the experiment."""
    for table in tables:
        if unknown := sorted(table.keys() - _KEYS):
            raise ExperimentError(file, f"a table has {', '.join(unknown)}; it may have {', '.join(sorted(_KEYS))}")
        heads = [one.get("head") for one in table.get("columns", ())]
        plot = table.get("plot", {})
        if plot and ("y" not in plot or plot.keys() - _PLOT_KEYS or any(one not in heads for one in plot.values())):
            raise ExperimentError(file, f"a plot has y, and may have x, each the head of a column; not {plot}")
        for aim in table.get("aims", ()):
            if aim.keys() != _AIM_KEYS or aim["column"] not in heads or not aim["of"]:
                raise ExperimentError(file, f"an aim has column (the head of one), systems, of and words; not {aim}")
        for load in loads_of(table):
            if load not in (*loads, FILL):
                raise ExperimentError(file, f"table {table.get('title')!r} names {load}, which is no load")


def loads_of(table: Json) -> list[str]:
    """Return the loads whose figures a table has."""
    each = table.get("each") or (table.get("ratios") or table.get("intervals", {})).get("each")
    paths = [each] if each else [one.get("value", "") for one in table.get("columns", ())]
    return list(dict.fromkeys(path.partition(".")[0] for path in paths))


def has_system(table: Json, system: str) -> bool:
    return any(fnmatchcase(system, pattern) for pattern in table.get("systems", ("*",)))


def table_of(table: Json, names: Mapping[str, str], results: Sequence[Json]) -> Table:
    """Return a table; ``names`` are the systems with their titles, in order, and ``results`` those of all cells."""
    columns = table.get("columns", ())
    rows: list[Row] = []
    for system, title in (names or {"": ""}).items():
        if not has_system(table, system):
            continue
        mine = {name: _of(results, name, system) for name in loads_of(table)}
        rows += list(_rows(table, columns, title, mine))
    rows = _beside_first(rows, columns)
    aims = [text for aim in table.get("aims", ()) for text in _aim_notes(aim, columns, rows, names)]
    for words in table.get("reference", ()):
        cells = (*map(str, words[1:]), *[""] * (len(columns) - len(words) + 1))
        rows.append(Row(str(words[0]), cells, is_reference=True))
    notes = [str(table["note"])] if table.get("note") else []
    notes += aims
    has_rates = any(column.get("capped") for column in columns)
    for found in results:
        if _is_in(table, found):
            notes += _note(found, has_rates=has_rates)
    head = ("", *(str(one["head"]) for one in columns))
    return Table(str(table.get("title", "")), head, tuple(rows), tuple(notes), table.get("plot", {}))


def _is_in(table: Json, found: Json) -> bool:
    return found["load"] in loads_of(table) and has_system(table, found["system"])


def notes_beside(tables: Sequence[Json], results: Sequence[Json]) -> tuple[str, ...]:
    """Return the notes of cells that are in none of the tables."""
    alone = [found for found in results if not any(_is_in(table, found) for table in tables)]
    return tuple(note for found in alone for note in _note(found, has_rates=False))


def _aim_notes(aim: Json, columns: Sequence[Json], rows: Sequence[Row], names: Mapping[str, str]) -> Iterator[str]:
    at = [column["head"] for column in columns].index(aim["column"])
    meant = {title for system, title in names.items() if any(fnmatchcase(system, one) for one in aim["systems"])}
    for row in rows:
        if row.name in meant and row.values and (value := row.values[at]) is not None:
            yield f"{row.name}: {text_of_value(value / float(aim['of']), DIGITS)} {aim['words']}"


def _rows(table: Json, columns: Sequence[Json], title: str, mine: Mapping[str, list[Json]]) -> Iterator[Row]:
    if "ratios" in table:
        yield from _ratio_rows(table["ratios"], columns, mine)
        return
    if "intervals" in table:
        yield from _interval_rows(table["intervals"], columns, mine)
        return
    if "each" not in table:
        if any(mine.values()):
            yield _row(title, columns, [_first_of_each(mine, number) for number in range(_most(mine))])
        return
    load, _, path = str(table["each"]).partition(".")
    lists = [figure_at(one, path) or [] for one in mine[load]]
    for at in range(max(map(len, lists), default=0)):
        yield _row(title, columns, [one[at] for one in lists if at < len(one)])


def _elements(each: str, mine: Mapping[str, list[Json]]) -> list[Json]:
    load, _, path = each.partition(".")
    return [one for found in mine[load] for one in figure_at(found, path) or []]


def _interval_rows(spec: Json, columns: Sequence[Json], mine: Mapping[str, list[Json]]) -> Iterator[Row]:
    for one in _elements(str(spec["each"]), mine):
        if any(one.get(key) != value for key, value in spec.get("only", {}).items()):
            continue
        cells, values = list[str](), list[float | None]()
        for column in columns:
            figures = [value_of(column, round_) for round_ in one[spec["rounds"]]]
            known = [figure for figure in figures if figure is not None]
            if column.get("sum"):
                values.append(sum(known) if known else None)
                cells.append(text_of_value(values[-1], int(column.get("digits", DIGITS))))
                continue
            found = interval_of(known)
            values.append(found[0] if found else None)
            cells.append(_text_of_interval(found))
        yield Row(" ".join(str(one.get(name, "")) for name in spec["names"]), tuple(cells), tuple(values))


def _ratio_rows(ratios: Json, columns: Sequence[Json], mine: Mapping[str, list[Json]]) -> Iterator[Row]:
    elements = _elements(str(ratios["each"]), mine)
    beside = {_keys_of(one, ratios): one for one in elements if one.get(ratios["of"]) == ratios["beside"]}
    for one in elements:
        other = beside.get(_keys_of(one, ratios))
        if other is None or other is one:
            continue
        pairs = list(zip(one[ratios["rounds"]], other[ratios["rounds"]], strict=False))
        found = [interval_of([_ratio(column, *pair) for pair in pairs]) for column in columns]
        name = " ".join((*_keys_of(one, ratios), str(one[ratios["of"]])))
        yield Row(name, tuple(map(_text_of_interval, found)), tuple(each[0] if each else None for each in found))


def _beside_first(rows: Sequence[Row], columns: Sequence[Json]) -> list[Row]:
    """Return the rows, with each column that says ``of_first`` as a multiple of the first row's."""
    made = []
    for row in rows:
        cells, values = list(row.cells), list(row.values)
        for at, column in enumerate(columns):
            first, mine = rows[0].values[at] if at < len(rows[0].values) else None, values[at] if values else None
            if column.get("of_first"):
                values[at] = mine / first if mine and first else None
                cells[at] = text_of_value(values[at], int(column.get("digits", DIGITS)))
        made.append(Row(row.name, tuple(cells), tuple(values)))
    return made


def _keys_of(element: Json, ratios: Json) -> tuple[str, ...]:
    return tuple(str(element.get(key, "")) for key in ratios["keys"])


def _ratio(column: Json, ours: Json, theirs: Json) -> float | None:
    above, below = _sum_at(ours, str(column["value"])), _sum_at(theirs, str(column["value"]))
    return above / below if above and below else None


def interval_of(ratios: Sequence[float | None]) -> tuple[float, float | None, float | None] | None:
    """Return the mean of the ratios and the ends of its interval; without ends if there is one ratio alone."""
    logs = [log(one) for one in ratios if one]
    if not logs:
        return None
    if len(logs) == 1:
        return exp(logs[0]), None, None
    middle, spread = fmean(logs), stdev(logs) / len(logs) ** 0.5
    width = t_quantile(ENDS, len(logs) - 1) * spread
    return exp(middle), exp(middle - width), exp(middle + width)


def _text_of_interval(found: tuple[float, float | None, float | None] | None) -> str:
    if found is None:
        return NONE
    middle, low, high = found
    text = text_of_value(middle, DIGITS)
    return text if low is None else f"{text} ({text_of_value(low, DIGITS)} to {text_of_value(high, DIGITS)})"


def _most(mine: Mapping[str, list[Json]]) -> int:
    return max(len(found) for found in mine.values())


def _first_of_each(mine: Mapping[str, list[Json]], number: int) -> Json:
    """Return a repetition: the loads by name, each with its result of this number, or its last one."""
    return {name: found[min(number, len(found) - 1)] for name, found in mine.items() if found}


def _row(title: str, columns: Sequence[Json], repetitions: Sequence[Json]) -> Row:
    values = [
        _middle([value for one in repetitions if (value := value_of(column, one)) is not None]) for column in columns
    ]
    cells = tuple(
        text_of_value(value, int(one.get("digits", DIGITS))) for value, one in zip(values, columns, strict=True)
    )
    return Row(title, cells, tuple(values))


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def value_of(column: Json, found: Json) -> float | None:
    """Return a column's figure of a repetition; None if a part of it is missing."""
    path = str(column["value"])
    load = path.partition(".")[0]
    if column.get("capped") and figure_at(found, f"{load}.why_uncapped"):
        return None
    value = _sum_at(found, path, max if column.get("largest") else sum)
    if value is None and load in found:
        value = column.get("missing")
    if "per" in column and value is not None:
        by = _sum_at(found, str(column["per"]))
        value = value / by if by else None
    return None if value is None else value * float(column.get("times", 1))


def _sum_at(found: Json, path: str, all_of: Callable[[list[float]], float] = sum) -> float | None:
    before, star, after = path.partition(".*")
    if star:
        inner = figure_at(found, before)
        each = inner.values() if isinstance(inner, Mapping) else []
        numbers = [
            float(one) for one in (figure_at(one, after[1:]) if after else one for one in each) if _is_number(one)
        ]
        return all_of(numbers) if numbers else None
    value = figure_at(found, path)
    return float(value) if _is_number(value) else None


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_of_value(value: float | None, digits: int) -> str:
    """Return a figure of so many digits, without an exponent."""
    if value is None:
        return NONE
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e" in text and abs(value) >= 1 else f"{float(text):g}"


def _of(results: Sequence[Json], load: str, system: str) -> list[Json]:
    found = [one for one in results if one["load"] == load and one["system"] in (system, "") and one["ok"]]
    return sorted(found, key=lambda one: int(one.get("number", 1)))


def _note(found: Json, *, has_rates: bool) -> list[str]:
    what = f"{found['load']} {found['system']}".strip()
    if not found["ok"]:
        return [f"{what} failed: {found['why']}"]
    notes = []
    if NOT_VALID in found.get("statuses", ()):
        notes.append(f"{what} was not valid: the generator, not the system, was the limit")
    if why := found.get("why_uncapped"):
        so = "so its rates are left out" if has_rates else "so its figures are of processes without a bound"
        notes.append(f"{what} had no share of a core, {so}: {why}")
    if (share := found.get("others_cpu_share", 0.0)) > OTHERS_CPU:
        notes.append(f"beside {what} other programs took {share:.0%} of the cores")
    return notes


def facts_of(results: Sequence[Json]) -> tuple[tuple[str, str], ...]:
    """Return where and when the figures were taken, with which programs, and what else the machine did."""
    if not results:
        return ()
    ordered = sorted(results, key=lambda one: str(one["environment"]["date"]))
    first = ordered[0]["environment"]
    end = max(_end_of(one) for one in results)
    others = [one["others_cpu_share"] for one in results if "others_cpu_share" in one]
    versions = [(f"versions of {one['system']}", "; ".join(_versions(one))) for one in results if _versions(one)]
    machine = f"{first['cores']} cores, {first['processor']}, {first['machine']}, Python {first['python']}"
    facts = [("machine", machine), ("measured", f"{first['date']} to {end}"), *versions]
    if others:
        facts.append(("other work on the machine", f"{median(others):.0%} of its cores, at most {max(others):.0%}"))
    stolen = [share for one in results if (share := one.get("contention", {}).get("stolen_share")) is not None]
    if stolen:
        facts.append(("kept by the host", f"{median(stolen):.1%} of the cores (steal), at most {max(stolen):.1%}"))
    return tuple(facts)


def _end_of(found: Json) -> str:
    """Return when a cell ended: its environment has the moment of its begin."""
    began = datetime.strptime(str(found["environment"]["date"]), _DATE).replace(tzinfo=UTC)
    return (began + timedelta(seconds=float(found.get("lasted_s", 0.0)))).strftime(_DATE)


def _versions(found: Json) -> list[str]:
    versions = figure_at(found, "figures.versions") if found["load"] == FILL else None
    return versions if isinstance(versions, list) else []


def markdown_of(page: Page) -> str:
    """Return the page in Markdown."""
    lines = [f"# {page.title}", "", page.about, "", *(f"* {name}: {text}" for name, text in page.facts), ""]
    lines += [f"{note}\n" for note in page.notes]
    for table in page.tables:
        lines += [f"## {table.title}", "", _line(table.head), _line(["---"] * len(table.head))]
        lines += [_line([f"*{row.name}*" if row.is_reference else row.name, *row.cells]) for row in table.rows]
        lines += ["", *(f"{note}\n" for note in table.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def json_of(page: Page) -> Json:
    """Return the page for programs; values are numbers, without their rounding."""
    tables = [
        {
            "title": table.title,
            "head": list(table.head),
            "rows": [
                {"name": row.name, "cells": list(row.cells), "values": list(row.values), "reference": row.is_reference}
                for row in table.rows
            ],
            "notes": list(table.notes),
        }
        for table in page.tables
    ]
    about = {"format": FORMAT, "title": page.title, "facts": dict(page.facts), "notes": list(page.notes)}
    return {**about, "tables": tables}


def html_of(page: Page, details: str = "", drawings: Sequence[str] = ()) -> str:
    """Return one page that needs no other file; ``details`` stand at its end as they are, folded, and so not on paper.

    ``drawings`` are SVG, one for each table, empty for a table without one.
    """
    safe = html.escape
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{safe(page.title)}</title><style>{_STYLE}</style>",
        f"<h1>{safe(page.title)}</h1><p>{safe(page.about)}</p><ul>",
        *(f"<li>{safe(name)}: {safe(text)}</li>" for name, text in page.facts),
        "</ul>",
        *(f"<p>{safe(note)}</p>" for note in page.notes),
    ]
    for table, drawing in zip(page.tables, drawings or [""] * len(page.tables), strict=True):
        figure = f"<figure>{drawing}</figure>" if drawing else ""
        head = "".join(f'<th scope="col">{safe(cell)}</th>' for cell in table.head)
        parts.append(f"<h2>{safe(table.title)}</h2>{figure}<table><thead><tr>{head}</tr></thead><tbody>")
        for row in table.rows:
            cells = "".join(f"<td>{safe(cell)}</td>" for cell in (row.name, *row.cells))
            parts.append(f"<tr{' class=reference' if row.is_reference else ''}>{cells}</tr>")
        parts.append("</tbody></table>" + "".join(f"<p>{safe(note)}</p>" for note in table.notes))
    if details:
        parts.append(f"<details><summary>Every result</summary><pre>{safe(details)}</pre></details>")
    return "".join(parts) + "</html>\n"
