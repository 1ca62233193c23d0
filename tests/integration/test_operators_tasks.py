"""docs/operators-tasks.md: each task, done as its steps say on a machine in a folder, prints what the page says."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from columnar.client import Connection
from tests.support.operators_page import PAGE, ROOT, Command, Machine, Step, pattern_of, tasks_of
from tests.support.readme_blocks import blocks_of

TASKS: Final = tasks_of(PAGE.read_text())
FIRST: Final = "Start at boot"
ROWS: Final = 20_000
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="systemd is of Linux"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl"),
]


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.close()


def has_a_row(machine: Machine) -> None:
    machine.type("systemctl start columnar && columnar create pages text && columnar put pages Home text:body=Hello")


def has_certificates(machine: Machine) -> None:
    """The page on security says how they are made."""
    page = (ROOT / "docs/security.md").read_text()
    section = page[page.index("## Certificates for a trial") :].partition("\n\n## ")[0]
    (block,) = blocks_of(f"{section}\n")
    lines = [line for line in block.text.splitlines() if line.startswith(("openssl", "printf"))]
    machine.type(f"cd /etc/columnar && {{ {' && '.join(lines)}; }} 2>/dev/null && cd - >/dev/null")


def has_certificates_and_a_row(machine: Machine) -> None:
    has_certificates(machine)
    has_a_row(machine)


def serves_tls(machine: Machine) -> None:
    has_certificates(machine)
    settings = '[standalone]\ntls-cert = "store.crt"\ntls-key = "store.key"\n'
    machine.write(f"{machine.root}/etc/columnar/columnar.toml", settings)
    machine.type("systemctl start columnar")


def has_two_tables(machine: Machine) -> None:
    machine.type("systemctl start columnar && columnar create pages text && columnar create events e")
    with Connection("127.0.0.1", machine.port) as connection, connection.table("events").batch() as batch:
        for number in range(ROWS):
            batch.put(b"%06d" % number, {b"e:kind": b"click"})


def clients_work(machine: Machine) -> None:
    """A filter that drops all rows of a table, and gets of another one."""
    with Connection("127.0.0.1", machine.port, timeout=60_000) as connection:
        for _ in range(3):  # so often that it is the first, also if a get is slow on a busy machine
            assert list(connection.table("events").scan(filter="ValueFilter(=, 'binary:no such value')")) == []
        assert connection.table("pages").row(b"Home") == {}


def lost_a_row(machine: Machine) -> None:
    has_a_row(machine)
    machine.type("columnar backup /mnt/backups/store && columnar delete pages Home")
    listed = machine.type("columnar backup list /mnt/backups/store")
    machine.replaced["20261127T020000.000Z"] = listed.split()[0]


def has_a_new_wheel(machine: Machine) -> None:
    has_a_row(machine)
    (machine.root / "work/columnar-0.1.0-py3-none-any.whl").touch()


def cannot_start(machine: Machine) -> None:
    has_a_row(machine)
    machine.type("systemctl stop columnar")
    (machine.root / "var/lib/columnar/FORMAT").unlink()
    machine.write(f"{machine.root}/etc/columnar/columnar.toml", "[standalone]\nprot = 9190\n")


PREPARED: Final[dict[str, Callable[[Machine], None]]] = {
    FIRST: lambda machine: None,
    "Limit memory": has_a_row,
    "Give a team read rights on one namespace": has_certificates_and_a_row,
    "Rotate logs": has_a_row,
    "Rotate certificates": serves_tls,
    "Find a slow table": has_two_tables,
    "Move to another disk": has_a_row,
    "Restore yesterday's table": lost_a_row,
    "Upgrade": has_a_new_wheel,
    "Find out why it does not start": cannot_start,
}
BEFORE_STEP: Final = {("Find a slow table", 2): clients_work}


@pytest.mark.parametrize("title", TASKS)
def test_a_task_is_done_as_its_steps_say(title: str, machine: Machine) -> None:
    if title != FIRST:
        machine.install()
    PREPARED[title](machine)
    for number, step in enumerate(TASKS[title], 1):
        BEFORE_STEP.get((title, number), lambda machine: None)(machine)
        machine.do(step)
    if title == "Upgrade":
        variables = Path(f"/proc/{machine.unit.pid}/environ").read_text().split("\0")
        assert f"ENVIRONMENT_OF_VERSION={machine.root}/opt/columnar-0.1.0" in variables
    if title == "Limit memory":
        assert "MemoryMax=1075M" in (machine.root / "loaded/columnar.service.d/memory.conf").read_text()


def test_the_page_has_ten_tasks_and_its_table_has_them_in_their_order() -> None:
    assert list(TASKS) == list(PREPARED)
    listed = re.findall(r"^\| \[(.*?)\]\(#", PAGE.read_text(), re.M)
    assert listed == list(TASKS)


def test_steps_and_their_output_are_read() -> None:
    text = "## One\n\nwords\n\n1. Do.\n\n```console\n$ a | b\nx ... y\n...\n$ c\ncolumnar: no\n```\n\n2. Rest.\n"
    first: Step = (Command("a | b", ("x ... y", "...")), Command("c", ("columnar: no",)))
    assert tasks_of(text) == {"One": [first, ()]}
    assert [one.is_refused for one in first if isinstance(one, Command)] == [False, True]
    assert pattern_of(("x ... y", "...")).fullmatch("x 12 y\n")
    assert pattern_of(("x ... y", "...")).fullmatch("x 12 y\nmore\nyet more\n")
    assert not pattern_of(("x ... y",)).fullmatch("x 12 y\nmore\n")
    assert not pattern_of(("a(b)",)).fullmatch("ab\n")
    with pytest.raises(AssertionError, match="numbers of One"):
        tasks_of(text.replace("2. Rest", "3. Rest"))
