"""No I/O in a constructor: it takes values, and a function or class method beside it opens, reads, writes or starts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tidy.constructor_io import Project, parsed, project

# Classes whose constructors do I/O all the same, each with the reason.
ALLOWED = {
    "columnar.client.store_connection.StoreConnection": "happybase's interface: its constructor connects",
    "columnar.client.connection.ConnectionPool": "happybase's interface: its connections read certificates",
}


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return project().offences()


def test_no_constructor_does_io(found: dict[str, str]) -> None:
    bad = {name: why for name, why in found.items() if name not in ALLOWED}
    assert bad == {}, "let it take what it needs, and do the I/O in a function or class method beside it"


def test_every_exception_is_still_needed(found: dict[str, str]) -> None:
    assert set(ALLOWED) <= set(found)


OTHER = """
import os

class Held:
    def __init__(self, path):
        self.size = os.stat(path).st_size

class Pure:
    def __init__(self, path):
        self.path = os.path.join(path, "x")

    @classmethod
    def opened(cls, path):
        open(path)
        return cls(path)

    def peek(self):
        return open(self.path)

def begun(path):
    return Held(path)
"""


def of(body: str, *, before: str = "") -> str:
    """The offence of a class ``One`` whose body this is; empty where there is none."""
    head = "import asyncio, os, socket, mmap, subprocess, threading\nimport shutil as sh\nfrom pathlib import Path\n"
    head += "from project.other import Held, Pure, begun\nfrom project import other\n"
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    text = f"{head}{before}\nclass One:\n{lines}"
    texts = {"project.other": OTHER, "project.one": text}
    modules = [parsed(name, Path(f"{name}.py"), ast.parse(code)) for name, code in texts.items()]
    return Project(modules).offences().get("project.one.One", "")


@pytest.mark.parametrize(
    "call",
    [
        "open(path)",
        "os.stat(path)",
        "os.path.exists(path)",
        "os.open(path, os.O_RDONLY)",
        "mmap.mmap(3, 10)",
        "socket.socket()",
        "sock.bind(path)",
        "self.sock.connect(path)",
        "subprocess.run(path)",
        "sh.rmtree(path)",
        "Path(path).read_text()",
        "threading.Thread(target=path).start()",
        "self._thread.start()",
        "asyncio.create_task(path)",
        "store.get('meta', b'k')",
        "self._store.scan('meta', b'', None)",
        "region.store.batch()",
        "store.write(path)",
        "read_all()",
        "Held(path)",
        "other.Held(path)",
        "begun(path)",
        "Pure.opened(path)",
        "held.peek()",
    ],
)
def test_a_call_that_is_found(call: str) -> None:
    parameters = "self, path, sock, store, region, held, read_all"
    assert of(f"def __init__({parameters}):\n    self.it = [{call}]") != ""
    assert of(f"def __post_init__({parameters}):\n    if path:\n        {call}") != ""


@pytest.mark.parametrize(
    "call",
    [
        "os.path.join(path, 'a')",
        "os.getpid()",
        "threading.Thread(target=path)",
        "threading.Lock()",
        "settings.get('a')",
        "Pure(path)",
        "lambda: open(path)",
        "self._later",
        "self._lines()",
        "self._fetch()",
        "clock()",
    ],
)
def test_a_call_that_is_none(call: str) -> None:
    body = f"""
def __init__(self, path, settings, clock=len):
    self.it = {call}
def _later(self):
    open(self.it)
def _lines(self):
    yield open(self.it)
async def _fetch(self):
    open(self.it)
"""
    assert of(body) == ""


def test_io_is_found_through_methods_functions_and_bases() -> None:
    deep = """
def __init__(self, path):
    self._a(path)
def _a(self, path):
    self._b(path)
def _b(self, path):
    helper(path)
"""
    assert of(deep, before="def helper(path):\n    return open(path)\n") == "_a > _b > helper > open"
    base = "class Base:\n    def take(self):\n        open('x')\n"
    assert of("def __init__(self):\n    self.one = Two()", before=f"{base}class Two(Base):\n    pass\n") == ""
    inherited = f"{base}class Two(Base):\n    def __init__(self):\n        self.take()\n"
    assert of("def __init__(self):\n    self.one = Two()", before=inherited) == "Two > take > open"


def test_io_is_found_where_calls_go_in_a_circle() -> None:
    circle = "def first():\n    second()\n    open('x')\ndef second():\n    first()\n"
    other = "class Zero:\n    def __init__(self):\n        first()\n"  # it is looked at before One
    assert of("def __init__(self):\n    second()", before=circle + other) == "second > first > open"


@pytest.mark.parametrize("use", ["list({})", "[*{}]", "[a for a in {}]", "next({})"])
def test_a_generator_that_is_run(use: str) -> None:
    body = f"def __init__(self):\n    self.it = {use.format('self._lines()')}\ndef _lines(self):\n    yield open('x')"
    assert of(body) == "_lines > open"


def test_a_default_is_followed() -> None:
    reading = "def measured():\n    return open('/proc/self/statm')\n"
    body = "def __init__(self, size{}):\n    self.least = size()"
    assert of(body.format("=measured"), before=reading) == "size > measured > open"
    assert of(body.format(", *, other=measured"), before=reading) == ""
