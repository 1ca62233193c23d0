"""Finds I/O in constructors: follows the calls of ``__init__`` and ``__post_init__`` through the project's own code.

A call is I/O if its name is on one of the lists below, or if it resolves to a function of the project that does I/O,
however deep.  Names resolve to functions and classes of the module, to imported ones, to methods of the same class and
of its bases, and to ``Class.method``; a parameter resolves to its default.  A method of another object counts if every
method of that name in the project does I/O.

Calls in lambdas and nested functions are not the constructor's.  A coroutine does nothing when it is called, and a
generator nothing before it is iterated over.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.tidy.sources import SOURCES, module_name, statements, tree_of

_CALLS_DEEP: Final = 10_000  # frames: five for each call of a chain, and chains lead through most of the project
CONSTRUCTORS: Final = ("__init__", "__post_init__")

# Modules whose every function reaches out of the process, but for the names behind the colon.
_MODULES: Final[dict[str, frozenset[str]]] = {
    "os": frozenset({"fspath", "getpid", "fsencode", "fsdecode", "sysconf", "cpu_count", "urandom", "environ"}),
    "os.path": frozenset(
        {"join", "basename", "dirname", "split", "splitext", "normpath", "abspath", "isabs", "relpath", "commonpath"}
    ),
    "os.environ": frozenset({"get"}),
    "socket": frozenset({"inet_pton", "inet_ntop"}),
    "fcntl": frozenset(),
    "gzip": frozenset({"compress", "decompress"}),
    "mmap": frozenset(),
    "select": frozenset(),
    "shutil": frozenset(),
    "sqlite3": frozenset(),
    "subprocess": frozenset(),
    "tempfile": frozenset(),
    "urllib.request": frozenset(),
}
_FUNCTIONS: Final = frozenset(
    {
        "open",
        "input",
        "asyncio.create_task",
        "asyncio.ensure_future",
        "asyncio.open_connection",
        "asyncio.run",
        "asyncio.start_server",
        "concurrent.futures.ProcessPoolExecutor",  # makes its pipes at once; a ThreadPoolExecutor makes nothing
        "importlib.resources.files",
        "rocksdict.Rdict",
        "ssl.create_default_context",
        "threading.Timer.start",
    }
)
# Methods of files, paths, sockets, threads, templates and stores, whatever the object is called.
_METHODS: Final = frozenset(  # as text: the formatter would give each name a line
    """
    accept begin_capture bind compact connect do_handshake execute executemany executescript exists flush gather
    get_template glob ingest is_dir is_file iterdir listen load_cert_chain load_verify_locations mkdir multi_get
    open open_meta open_store read read_bytes read_decisions read_piece read_text readinto readline readlines recv
    recv_into rglob scan scan_reverse send sendall sendfile set_thread_count shutdown start stat submit sync touch
    unlink write write_batch write_bytes write_rows write_text
    """.split()  # noqa: SIM905
)
# Methods that others have too: I/O where the object's name says that it is a store or a connection.
_OF_OBJECTS: Final[dict[str, frozenset[str]]] = {
    "store": frozenset({"batch", "close", "get", "range", "run", "settle", "files", "size_bytes"}),
    "connection": frozenset({"call", "close", "tables"}),
    "executor": frozenset({"map"}),
}
# Names of functions that come as arguments begin with these.
_READERS: Final = ("read", "write", "open", "load_")
_CONSUMERS: Final = frozenset(
    {"list", "tuple", "set", "frozenset", "dict", "sorted", "next", "sum", "any", "all", "min", "max", "deque"}
)
_APART: Final = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Function:
    name: str  # as Class.method
    node: ast.FunctionDef | ast.AsyncFunctionDef
    module: Module
    owner: str = ""  # its class

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """What runs when it runs; walked once, for each call to it asks again whether it is a generator."""
        statements = [one for one in self.node.body if not isinstance(one, _APART)]
        return [node for statement in statements for node in (statement, *_own_nodes(statement))]

    @cached_property
    def is_generator(self) -> bool:
        return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in self.nodes)


@dataclass
class Module:
    name: str
    path: Path
    imports: dict[str, str] = field(default_factory=dict)  # name here -> full name
    functions: dict[str, Function] = field(default_factory=dict)  # Class.method too
    bases: dict[str, list[ast.expr]] = field(default_factory=dict)  # by class


def parsed(name: str, path: Path, tree: ast.Module) -> Module:
    module = Module(name, path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module.imports[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            above = parts[: len(parts) - node.level + 1] if node.level else []
            origin = ".".join([*above, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                module.imports[alias.asname or alias.name] = f"{origin}.{alias.name}"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions[node.name] = Function(node.name, node, module)
    for node in statements(tree):
        if isinstance(node, ast.ClassDef):
            module.bases[node.name] = node.bases
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                    name_in = f"{node.name}.{member.name}"
                    module.functions[name_in] = Function(name_in, member, module, node.name)
    return module


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the function runs: nothing of lambdas and of functions within."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda | _APART):
            yield child
            yield from _own_nodes(child)


def _consumed(function: Function) -> set[int]:
    """By identity: calls whose result is iterated over at once, as in ``list(call())`` or ``with call()``."""
    found: list[ast.AST] = []
    for node in function.nodes:
        if isinstance(node, ast.For | ast.comprehension):
            found.append(node.iter)
        elif isinstance(node, ast.Call) and _dotted(node.func) in _CONSUMERS:
            found += node.args
        elif isinstance(node, ast.Starred | ast.YieldFrom):
            found.append(node.value)
        elif isinstance(node, ast.withitem):
            found.append(node.context_expr)
    return {id(node) for node in found}


def _defaults(function: Function) -> dict[str, ast.expr]:
    """The default of each parameter that has one."""
    given = function.node.args
    pairs = zip(reversed(given.args), reversed(given.defaults), strict=False)
    named = {parameter.arg: default for parameter, default in pairs}
    for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default is not None:
            named[parameter.arg] = default
    return named


def _dotted(node: ast.expr) -> str:
    """``a.b.c``; of anything but names an empty part, as ``.start`` of ``Thread(...).start``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""


def _is_listed(full: str) -> bool:
    module, _, last = full.rpartition(".")
    return full in _FUNCTIONS or (module in _MODULES and last not in _MODULES[module])


def _is_method_of_an_object(written: str) -> bool:
    target, _, method = written.rpartition(".")
    if method in _METHODS:
        return True
    named = target.rpartition(".")[2].strip("_")
    return any(named.endswith(kind) and method in methods for kind, methods in _OF_OBJECTS.items())


class Project:
    """The modules of the project, and for each function why it does I/O."""

    def __init__(self, modules: list[Module]) -> None:
        self._modules = {module.name: module for module in modules}
        self._known: dict[int, str] = {}  # by identity of the function; "" while it is in progress, and for none
        self._by_method: dict[str, list[Function]] = {}
        for module in modules:
            for function in module.functions.values():
                if function.owner:
                    self._by_method.setdefault(function.node.name, []).append(function)

    def offences(self) -> dict[str, str]:
        """By ``module.Class``: the chain of calls from its constructor to the I/O.

        A function that is met while its caller's caller is in progress counts as without I/O, rightly or not: calls
        go in circles.  So all are asked again, beside the I/O that is known, until no more is found.
        """
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _CALLS_DEEP))
        known = -1
        while len(self._known) > known:
            known = len(self._known)
            found = self._pass()
            self._known = {function: why for function, why in self._known.items() if why}
        return found

    def _pass(self) -> dict[str, str]:
        return {
            f"{module.name}.{function.owner}": why
            for module in self._modules.values()
            for function in module.functions.values()
            if function.owner and function.node.name in CONSTRUCTORS and (why := self.io_of(function))
        }

    def io_of(self, function: Function) -> str:
        """The calls that lead to I/O, as ``open`` or ``_take_lock > fcntl.flock``; empty where none does."""
        held = self._known.get(id(function))
        if held is not None:
            return held
        self._known[id(function)] = ""
        consumed = _consumed(function)
        for node in function.nodes:
            if isinstance(node, ast.Call) and (why := self._io_of_call(node.func, function, id(node) in consumed)):
                self._known[id(function)] = why
                return why
        return ""

    def _io_of_call(self, called: ast.expr, function: Function, is_consumed: bool) -> str:
        written = _dotted(called)
        root, _, rest = written.partition(".")
        module, parameters = function.module, function.node.args
        if root in ("self", "cls") and function.owner:
            if rest and "." not in rest and (own := self._method(module, function.owner, rest)) is not None:
                return self._through(rest, own, is_consumed)
            return self._io_of_method(written, is_consumed) if rest else ""
        if root in {one.arg for one in [*parameters.args, *parameters.kwonlyargs]}:
            return self._io_of_parameter(written, function, is_consumed)
        full = f"{module.imports[root]}.{rest}".rstrip(".") if root in module.imports else written
        if _is_listed(full):
            return full
        resolved = self._resolve(module, written, full)
        if resolved is not None:
            return self._through(written, resolved, is_consumed)
        return self._io_of_method(written, is_consumed) if root not in module.imports else ""

    def _io_of_parameter(self, written: str, function: Function, is_consumed: bool) -> str:
        if "." in written:
            return self._io_of_method(written, is_consumed)
        default = _defaults(function).get(written)
        if written.startswith(_READERS) or default is None:
            return written if written.startswith(_READERS) else ""
        why = self._io_of_call(default, function, is_consumed) if _dotted(default) not in ("", written) else ""
        return f"{written} > {why}" if why else ""

    def _through(self, name: str, called: Function, is_consumed: bool) -> str:
        runs = is_consumed if called.is_generator else isinstance(called.node, ast.FunctionDef)
        why = self.io_of(called) if runs else ""
        return f"{name} > {why}" if why else ""

    def _io_of_method(self, written: str, is_consumed: bool) -> str:
        if "." not in written:
            return ""
        if _is_method_of_an_object(written):
            return written
        found = self._by_method.get(written.rpartition(".")[2], [])
        reasons = [self._through(written, one, is_consumed) for one in found]
        return reasons[0] if reasons and all(reasons) else ""

    def _resolve(self, module: Module, written: str, full: str) -> Function | None:
        """The function, or the constructor of the class, that the name stands for."""
        for place, name in [(module, written), *self._places(full)]:
            if name in place.functions:
                return place.functions[name]
            if name in place.bases:
                for constructor in CONSTRUCTORS:
                    if (found := self._method(place, name, constructor)) is not None:
                        return found
            if name.count(".") == 1 and name.split(".")[0] in place.bases:
                return self._method(place, *name.split("."))
        return None

    def _places(self, full: str) -> Iterator[tuple[Module, str]]:
        parts = full.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = self._modules.get(".".join(parts[:cut]))
            if module is not None:
                yield module, ".".join(parts[cut:])
                again = module.imports.get(parts[cut])
                if again is not None:  # a package that imports what it offers
                    yield from self._places(".".join([again, *parts[cut + 1 :]]))

    def _method(self, module: Module, owner: str, name: str) -> Function | None:
        found = module.functions.get(f"{owner}.{name}")
        if found is not None:
            return found
        for base in module.bases.get(owner, []):
            written = _dotted(base)
            root, _, rest = written.partition(".")
            full = f"{module.imports[root]}.{rest}".rstrip(".") if root in module.imports else written
            for place, there in [(module, written), *self._places(full)]:
                if there in place.bases and there != owner:
                    return self._method(place, there, name)
        return None


def project() -> Project:
    """All of its packages."""
    return Project([parsed(module_name(path), path, tree_of(path)) for path in SOURCES])
