"""Each option of each table, generated: a flag before its variable, that before the file, that before the default."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from columnar.roles.config_commands import TABLES
from columnar.settings.configured import source_of
from columnar.settings.option_kinds import Kind, is_path, key_of, kind_of, settings_among, toml_text, variable_of
from columnar.settings.settings_file import COLUMNAR, BadSettings, Program
from wikka_port.commands.config import TABLES as WIKI_TABLES
from wikka_port.commands.settings import WIKKA

SAMPLES = {  # of options that do not take each text
    "kafka-advertise": ["one:1", "two:2", "three:3"],
    "file-types": ["png", "jpg", "pdf"],
    "files-url": ["https://one.example", "http://two.example:8080", "https://three.example"],
    "renderer": ["a=https://a.example/{code}", "b=https://b.example/{code}", "c=https://c.example/{code}"],
    "memory": ["1GiB", "2GiB", "3GiB"],
    "log-file-bytes": ["1MiB", "2MiB", "3MiB"],
    "log-levels": ["columnar.wire=debug", "columnar.tls=error", "columnar.slow=info"],
}
PROGRAMS = ((COLUMNAR, TABLES), (WIKKA, WIKI_TABLES))


@dataclass(frozen=True)
class Case:
    """An option of a table, with the command that has it."""

    program: Program
    table: str
    command: click.Command
    option: click.Option

    def values(self, folder: Path) -> list[Any]:
        """Three values that differ from each other and from the default, as TOML has them."""
        option, kind = self.option, kind_of(self.option)
        if kind is Kind.FLAG:
            return [True, False, True]
        if isinstance(option.type, click.Choice):
            names = [one for one in option.type.choices if one != option.default]
            return [names[n % len(names)] for n in range(3)]
        if isinstance(option.type, click.IntRange | click.FloatRange):
            low, high = math.ceil(option.type.min or 0), option.type.max
            found = [
                value for value in range(low, low + 6) if value != option.default and (high is None or value <= high)
            ]
            return [found[n % len(found)] for n in range(3)]
        names = SAMPLES.get(key_of(option), ["one", "two", "three"])
        names = [str(folder / name) for name in names] if is_path(option) else names
        for name in names:
            if isinstance(option.type, click.Path) and option.type.exists:
                Path(name).mkdir() if not option.type.file_okay else Path(name).write_text("")
        return [[name] for name in names] if kind is Kind.LIST else names

    def words(self, value: Any) -> list[str]:
        """The words of a command line that give the value."""
        flag = f"--{key_of(self.option)}"
        if kind_of(self.option) is Kind.FLAG:
            return [flag]
        return [word for one in (value if isinstance(value, list) else [value]) for word in (flag, str(one))]

    def taken(self, value: Any) -> Any:
        """The value as the command gets it."""
        return plain(self.option.process_value(click.Context(self.command), value))

    def resolve(self, words: list[str]) -> tuple[Any, str]:
        """The value that the command gets, and where it is from.  Other options that it needs are given."""
        needed = [
            word
            for one in settings_among(self.command.params)
            if one.required and one is not self.option
            for word in (f"--{key_of(one)}", "needed")
        ]
        ctx = self.command.make_context(self.command.name, [*needed, *words])
        return plain(ctx.params[str(self.option.name)]), source_of(self.program, ctx, self.option)


def plain(value: Any) -> Any:
    """The value without tuples and paths."""
    return list(map(str, value)) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value


def cases() -> Iterator[Case]:
    for program, tables in PROGRAMS:
        for name, described in tables.items():
            command = described.command()
            for option in described.table.options():
                own = next(one for one in command.params if one.name == option.name)
                assert isinstance(own, click.Option)
                yield Case(program, name, command, own)


CASES = list(cases())


def name_of(case: Case) -> str:
    return f"{case.program.name}-{case.table}-{case.option.name}"


each_option = pytest.mark.parametrize("case", CASES, ids=name_of)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variables of these programs, and no file."""
    for name in os.environ:
        if name.startswith(("COLUMNAR_", "WIKKA_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr("columnar.settings.settings_file.places", lambda _program: [])


def write(case: Case, folder: Path, text: str) -> list[str]:
    file = folder / case.program.file_name
    file.write_text(f"[{case.table}]\n{key_of(case.option)} = {text}\n")
    return ["--config", str(file)]


@each_option
def test_a_flag_comes_before_a_variable_before_the_file_before_the_default(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = case.values(tmp_path)
    by_flag, by_variable, by_file = values
    flag, variable_value, file_value = map(case.taken, values)
    variable = variable_of(case.program.name, case.option)
    if not case.option.required:
        value, source = case.resolve([])
        assert source == "default"
        assert value not in (flag, file_value)
    named = write(case, tmp_path, toml_text(by_file))
    assert case.resolve(named) == (file_value, str(tmp_path / case.program.file_name))
    monkeypatch.setenv(variable, " ".join(by_variable) if isinstance(by_variable, list) else str(by_variable))
    assert case.resolve(named) == (variable_value, variable)
    assert case.resolve([*named, *case.words(by_flag)]) == (flag, "flag")


@each_option
def test_a_value_of_a_wrong_type_ends_the_start_with_one_line(case: Case, tmp_path: Path) -> None:
    kind = kind_of(case.option)
    wrong = {Kind.FLAG: '"yes"', Kind.INTEGER: "true", Kind.NUMBER: '"1.5"', Kind.TEXT: "7", Kind.LIST: '"one"'}[kind]
    with pytest.raises(BadSettings) as caught:
        case.resolve(write(case, tmp_path, wrong))
    place = f"{tmp_path / case.program.file_name}:2: [{case.table}] {key_of(case.option)}: "
    assert caught.value.message.startswith(f"{place}this must be {kind.value}, and is ")
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2


def out_of_range(option: click.Option) -> str:
    """A value that the option refuses, in TOML; empty if it takes each text."""
    if isinstance(option.type, click.Choice):
        return '"none of these"'
    if isinstance(option.type, click.IntRange | click.FloatRange):
        return str(int(option.type.min or 0) - 1)
    return '"/no/such/path"' if isinstance(option.type, click.Path) and option.type.exists else ""


@pytest.mark.parametrize("case", [case for case in CASES if out_of_range(case.option)], ids=name_of)
def test_a_value_out_of_range_ends_the_start_with_one_line(case: Case, tmp_path: Path) -> None:
    with pytest.raises(BadSettings) as caught:
        case.resolve(write(case, tmp_path, out_of_range(case.option)))
    assert caught.value.message.startswith(f"{tmp_path / case.program.file_name}:2: [{case.table}] ")
    assert "\n" not in caught.value.message


@each_option
def test_a_misspelt_key_names_the_nearest(case: Case, tmp_path: Path) -> None:
    key = key_of(case.option)
    for wrong in {f"{key[:-1]}", f"{key}x", key.replace("-", "_")} - {key_of(one.option) for one in CASES}:
        file = tmp_path / case.program.file_name
        file.write_text(f"# settings\n[{case.table}]\n\n{wrong} = 1\n")
        with pytest.raises(BadSettings) as caught:
            case.resolve(["--config", str(file)])
        said = caught.value.message
        assert said.startswith(f"{file}:4: [{case.table}] {wrong}: there is no such setting; "), said
        assert said.endswith((f"write {key}", f"did you mean {key}?")) or wrong == key[:-1], said


def test_variables_are_of_one_option_each() -> None:
    """A client's certificate is none of a server's: their variables differ, and those of before stay."""
    found: dict[str, set[str]] = {}
    for case in CASES:
        found.setdefault(variable_of(case.program.name, case.option), set()).add(key_of(case.option))
    assert [(name, keys) for name, keys in found.items() if len(keys) > 1] == []
    of_clients = {variable_of(one.program.name, one.option) for one in CASES if one.table == "client"}
    of_servers = {variable_of(one.program.name, one.option) for one in CASES if one.table != "client"}
    assert of_clients & of_servers == set()
    earlier = {"COLUMNAR_STORE", "COLUMNAR_TLS", "COLUMNAR_TLS_CA", "COLUMNAR_COORDINATION", "COLUMNAR_ZONE"}
    assert earlier <= found.keys()
    assert not {"COLUMNAR_COMPILED", "COLUMNAR_DEEP", "COLUMNAR_SEED", "COLUMNAR_CONFIG"} & found.keys()
