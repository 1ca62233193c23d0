"""Each command that takes a store, and each page, for each of seven roles: refused or not, as a matrix by hand has it.

The commands come from the command line itself, so a new one fails here until it has its line.  Commands that change
something name what is not there, or what each role has for itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner
from werkzeug.test import Client

from columnar.cli import main
from columnar.client import Connection
from columnar.config import RightsSettings
from columnar.model.accounts import ROOT
from columnar.rights.page_guard import PageGuard
from columnar.security.credentials import hash_of, new_token
from columnar.webui.server import StoreSite
from columnar.webui.status import LIVE_PATHS, READY_PATHS
from columnar.wire.browsers import Visitors
from columnar.wire.idl import columnar
from tests.support.serving import Serving

MODULE = "declared_in_a_test"
SOURCE = """
from columnar.triggers.api import on


@on("t", columns=["a"])
def declared(change):
    return None
"""
TABLES: Final = ("t", "gone", "v", "ordered", "joined")
# A view is hidden from those who have no right on it.
REFUSED: Final = ("Insufficient permissions", *(f"there is no view {one};" for one in ("v", "ordered", "joined")))
# They take no store, or are tested elsewhere: bundle puts what it was refused into its archive.
LOCAL: Final = frozenset(
    """
    standalone node version config completion repair probe-root bench restore-backup bundle backup advise
    """.split()  # noqa: SIM905
)
# Letters on the tables t, v and gone, and on everything; "" is nobody, who has not signed in.
ROLES: Final = {
    "": ("", ""),
    "stranger": ("", ""),
    "reader": ("R", ""),
    "writer": ("W", ""),
    "owner": ("RWXCA", ""),
    "monitor": ("", "X"),
    "programmer": ("R", "X"),
    "admin": ("", "A"),
    ROOT: ("", "RWXCA"),
}
# What a command needs, words joined by +: t:.. all of the letters on the table; t/.. one of them; g/.. one of them on
# everything; made: R on the table and X or A on everything; in: a user; open: nothing.
# & joins two needs.
MATRIX: Final = """
t:R         get t r a:1 | scan t | count t | view show v g | view top ordered g | view groups v | view members v g
t:R         view pairs joined g | changes t --no-follow | readers list t | readers drop none t --yes
t:W         put t r a:1=2 | delete t r a:9 | delete-rows t --prefix none --yes
t:RW        append t r a:9=x | check-and-put t r a:1=1 --if a:1=1 | incr t r a:n 1
t/CA        alter gone --add c | drop gone --yes | truncate gone --yes | enable gone | disable gone | describe t
t/CA        flush gone | compact gone
t/A         split gone x | snapshot take s-{role} gone
t/XA        regions t
t:W&g/A     bulk-load t {cells}
g/WXA       lease show none | lease release none --yes
g/A         lease list
g:W         queue push jobs-{role} x
g:R         queue peek jobs | queue stats jobs | queue list | queue dead jobs
g:RW        queue pop jobs | queue redrive jobs | queue remove-dead jobs --yes | queue purge jobs --yes
g/CA        topic create topic-{role} | topic configure topic-{role} --retention 1d
g:R         topic list | topic describe topic-{role} | topic consume topic-{role} | topic groups topic-{role}
g:R         topic audit topic-{role}
t:R&g:W     feed add t --topic none
g/WXA       feed drop none
in          feed list
g/XA&g:RW   queue serve none {module}:note
g:RWA       queue serve none http://127.0.0.1:9/
g/XA        queue served | queue pause none | queue resume none | queue unserve none
g:RW        topic produce topic-{role} x
g/CA        topic drop topic-{role} --yes
g/CA        queue configure jobs --attempts 3 | queue drop jobs-{role} --yes
g/CA        create made-{role} a | import {export} made-too-{role}
open        whoami | shell
in          tables | namespace list | permissions | trigger wait none | view list | readers list
g/A         namespace create n-{role} | namespace alter none k=v | namespace drop none | namespace describe none
g/A         grant bob R | revoke bob R | user drop none | user list | group add g-{role} bob | group remove none bob
g/A         user password bob --new-password-file {secret} | user token bob | user remove-token bob none
g/A         move none s1 | assign none | unassign none | balance | balancer on | auto-split on | drain none
g/A         undrain none | restart none | stop none | fence none | snapshot clone none x | snapshot delete none
g/A         snapshot list | snapshot restore none --yes | merge gone,a,1 gone,b,1
g/A         trigger dead list none | trigger dead show none | view check v | digest t
g/A         backup take {place}-{role} | backup restore-table {place} t restored-{role} | export t {place}-x-{role}
g/A         check | log-level
g/XA        status | servers | nodes | transitions | decisions | maintenance | flows | where t r | doctor
g/XA        trigger list | trigger pause none | trigger resume none | trigger reload | trigger remove none
made        trigger add t {module}:note --families a --name t-{role} | trigger sync {module} --yes
made        view rebuild v --from t --by b:1 | view add v-{role} --from t --by a:1
g/XA        trigger replay none --from beginning | trigger retry none | trigger dead skip none r
g/XA        trigger dead retry none r | trigger dead purge none --yes
g/XA        view drop none --yes | view rebuild v | view rollback none | view swap none
"""


def _needs() -> list[tuple[str, str]]:
    lines = [line.split(maxsplit=1) for line in MATRIX.strip().splitlines()]
    return [(command.strip(), need) for need, commands in lines for command in commands.split("|")]


def _may(role: str, need: str) -> bool:
    if "&" in need:
        return all(_may(role, one) for one in need.split("&"))
    on_table, everywhere = ROLES[role]
    has = {"t": on_table + everywhere, "g": everywhere}
    if need in ("open", "in"):
        return need == "open" or bool(role)
    if need == "made":
        return "R" in has["t"] and bool(set("XA") & set(everywhere))
    scope, kind, letters = need[0], need[1], need[2:]
    return (all if kind == ":" else any)(letter in has[scope] for letter in letters)


def _leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    for name in command.list_commands(click.Context(command)):
        below = command.get_command(click.Context(command), name)
        if below is not None and (words or name not in LOCAL):
            yield from _leaves(below, (*words, name))


class Place:
    """A store in which each role has its rights, and the command line as each of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._socket = str(folder / "clients")
        rights = RightsSettings(is_on=True, socket=self._socket)
        self.serving = Serving(folder / "data", rights=rights, trigger_modules=(MODULE,)).start()
        self.root = Connection(unix_socket=self._socket)
        for table in ("t", "u", "gone"):
            self.root.create_table(table, {"a": {}, "b": {}})
        self.root.table("t").put(b"r", {b"a:1": b"1"})
        for view in ("v", "ordered --order a:1", "joined --join u --by a:1"):
            name, *options = view.split()
            self.run(ROOT, f"view add {name} --from t --by a:1 {' '.join(options)}")
        self.tokens = {role: new_token(secrets.token_urlsafe) for role in ROLES if role not in ("", ROOT)}
        for role, token in self.tokens.items():
            self.root.call("columnarAddToken", role, "test", hash_of(token))
            if everywhere := ROLES[role][1]:
                self.root.call("columnarGrant", columnar.RightsGrant(grantee=role, rights=everywhere))
            for table in TABLES:
                self._grant(role, table)
        (folder / "secret").write_text("a long secret\n")
        (folder / "secret").chmod(0o600)
        (folder / "cells.tsv").write_text("r\ta:b\t1\n")
        self.run(ROOT, f"export t {folder / 'export'}")
        self.run(ROOT, f"backup take {folder / 'place'}")

    def _grant(self, role: str, table: str) -> None:
        if role and ROLES[role][0]:
            grant = columnar.RightsGrant(grantee=role, rights=ROLES[role][0], table=table.encode())
            self.root.call("columnarGrant", grant)

    def reset(self) -> None:
        """Remove the declared trigger, and make the table anew that an earlier command may have dropped."""
        if any(one.name == "t-declared" for one in self.root.triggers.list()):
            self.root.triggers.remove("t-declared")
        if not self.root.call("columnarTableExists", b"gone"):
            self.root.create_table("gone", {"a": {}, "b": {}})
            for role in ROLES:  # grants end with their table
                self._grant(role, "gone")

    def run(self, role: str, command: str) -> tuple[int, str]:
        """Return the status and all that the command says."""
        files = {"cells": "cells.tsv", "export": "export", "place": "place", "secret": "secret"}
        paths = {name: self.folder / file for name, file in files.items()}
        words = command.format(role=role or "nobody", module=MODULE, **paths).split()
        store = ["--store", f"unix:{self._socket}", "--user", role]
        if not role:
            store = ["--store", f"127.0.0.1:{self.serving.store.port}"]
        result = CliRunner().invoke(main, [*words, *store], input="")
        return result.exit_code, result.output


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("roles")
    (folder / f"{MODULE}.py").write_text(SOURCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        made = Place(folder)
        yield made
        made.root.close()
        made.serving.stop()


def test_each_command_that_takes_a_store_has_its_line() -> None:
    assert isinstance(main, click.Group)
    there = set(_leaves(main)) | {"backup take", "backup restore-table"}
    tried = {max((one for one in there if f"{command} ".startswith(f"{one} ")), key=len) for command, _ in _needs()}
    assert there - tried == set()


def test_each_command_by_each_role(place: Place) -> None:
    wrong, passed = [], set()
    for command, need in _needs():
        for role in ROLES:
            place.reset()
            status, said = place.run(role, command)
            is_refused = any(one in said for one in REFUSED)
            if is_refused == _may(role, need):
                wrong.append((command, need, role, status, said[-300:]))
            if "Usage:" in said or "can be asked here" in said:
                wrong.append((command, "is no right use of the command", role, status, said[-300:]))
            passed |= {role} if not is_refused else set()
    assert wrong == [], "\n".join(map(repr, wrong))
    assert passed == set(ROLES)


def test_each_page_by_each_role(place: Place) -> None:
    store = place.serving.store
    visitors = Visitors.of("127.0.0.1", ())
    visitors.guard_pages(PageGuard(store.judge_visitor, place.serving._loop).refusal)
    application = StoreSite(store.pages()).pages(place.serving.do, visitors)
    paths = [path.replace("*", "t") for path in application._answers]
    assert {"/", "/metrics", "/flows", "/requests"} <= set(paths)
    wrong = []
    for path in [*paths, "/none"]:
        for role in ROLES:
            if role == ROOT:
                continue  # nobody is root by HTTP
            headers = {"Authorization": f"Bearer {place.tokens[role]}"} if role else {}
            reply = Client(application).get(path, headers=headers, environ_base={"REMOTE_ADDR": "127.0.0.1"})
            is_open = path in (*LIVE_PATHS, *READY_PATHS)
            may = is_open or bool(set("XA") & set(ROLES[role][1]))
            expected = (200, 404) if may else (403,) if role else (401,)
            if reply.status_code not in expected:
                wrong.append((path, role, reply.status_code))
    assert wrong == []
