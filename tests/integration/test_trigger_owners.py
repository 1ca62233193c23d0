"""Triggers act with the rights of the user who added them: what they read, what they yield, and by their clients."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from columnar.client import Connection
from columnar.client.errors import StoreIllegalArgument, StoreIOError, WrongArgument
from columnar.client.store_socket import NotConnected
from columnar.config import RightsSettings
from columnar.model.accounts import ROOT
from columnar.wire.idl import columnar
from tests.support.serving import Serving
from tests.support.shell import Shell

MODULE = "owned_in_a_test"
SOURCE = """
from columnar.triggers.api import Put


def copy(change):
    yield Put("out", change.row, {b"f:v": change.now[b"f:v"]})


def by_client(change, client):
    client.table(b"out").put(change.row, {b"f:v": change.now[b"f:v"]}, timestamp=change.stamp)


def whoami(change, client):
    client.table(b"out").put(change.row, {b"f:who": client.call("columnarWhoAmI").user})


def previous(change, client):
    cells = b",".join(b"%s=%s" % one for one in sorted(change.before.items()))
    owner = client.call("columnarWhoAmI").user
    client.table(b"out").put(change.row, {b"g:t" if owner == b"ann" else b"g:wide": cells}, timestamp=change.stamp)


def of_message(message, client):
    client.table(b"out").put(message.body, {b"f:who": client.call("columnarWhoAmI").user})


def look(change):
    yield Put("out", change.row, {b"f:v": change.look("other").get(b"f:v", b"none")})
"""
DENIED = "AccessDeniedException"


class Place:
    """A store with rights, a module of triggers, and clients that act as any user."""

    def __init__(self, folder: Path, superusers: tuple[str, ...] = ()) -> None:
        folder.joinpath(f"{MODULE}.py").write_text(SOURCE)
        self._socket = str(folder / "clients")
        rights = RightsSettings(is_on=True, socket=self._socket, superusers=superusers)
        self._opened: list[Connection] = []
        self.serving = Serving(folder / "data", trigger_modules=(MODULE,), rights=rights).start()
        self.root = self.of_user(ROOT)
        for table in ("src", "out", "other"):
            self.root.create_table(table, {"f": {}, "g": {}})

    @property
    def address(self) -> str:
        return f"unix:{self._socket}"

    def of_user(self, user: str) -> Connection:
        self._opened.append(Connection(unix_socket=self._socket, user=user))
        return self._opened[-1]

    def grant(self, user: str, rights: str, table: bytes = b"", **scope: bytes) -> None:
        self.root.call("columnarGrant", columnar.RightsGrant(grantee=user, rights=rights, table=table, **scope))

    def revoke(self, user: str, rights: str, table: bytes = b"", **scope: bytes) -> None:
        self.root.call("columnarRevoke", columnar.RightsGrant(grantee=user, rights=rights, table=table, **scope))

    def copied(self, row: bytes, column: bytes = b"f:v") -> bytes | None:
        return self.root.table(b"out").row(row).get(column)

    def put(self, row: bytes, value: bytes = b"1") -> None:
        self.root.table(b"src").put(row, {b"f:v": value})

    def wait(self, name: str) -> None:
        assert self.root.triggers.wait(name, timeout_ms=50_000)

    def dead_letters(self, name: str) -> list[str]:
        """Return the errors of the dead letters, once the trigger has nothing more to deliver."""
        self.wait(name)
        return [one.error for one in self.root.triggers.dead_letters(name, limit=10)]

    def stop(self) -> None:
        for one in self._opened:
            one.close()
        self.serving.stop()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Place(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def ann(place: Place) -> Connection:
    """A user who may run triggers and read their source."""
    place.grant("ann", "X")
    place.grant("ann", "R", b"src")
    return place.of_user("ann")


def add(connection: Connection, name: str, function: str, **settings: object) -> None:
    options: dict[str, object] = {"attempts": 1, **settings}
    connection.triggers.add(name, b"src", f"{MODULE}:{function}", [b"f"], **options)  # type: ignore[arg-type]


def refused(call: Callable[[], object]) -> bool:
    with pytest.raises((StoreIOError, StoreIllegalArgument)) as caught:
        call()
    return DENIED in str(caught.value)


@pytest.mark.parametrize("function", ["copy", "by_client"])
def test_a_trigger_writes_what_its_owner_may_write(place: Place, ann: Connection, function: str) -> None:
    place.grant("ann", "W", b"out", family=b"f", qualifier=b"v")
    add(ann, "t", function)
    place.put(b"a")
    place.wait("t")
    assert place.copied(b"a") == b"1"
    place.revoke("ann", "W", b"out", family=b"f", qualifier=b"v")
    place.put(b"b")
    (error,) = place.dead_letters("t")
    assert DENIED in error
    assert "user=ann" in error
    assert place.copied(b"b") is None


def test_a_trigger_of_root_writes_everywhere_and_so_does_an_earlier_one(place: Place) -> None:
    add(place.root, "t", "copy")
    add(place.root, "who", "whoami")
    place.put(b"a")
    for name in ("t", "who"):
        place.wait(name)
    assert (place.copied(b"a"), place.copied(b"a", b"f:who")) == (b"1", ROOT.encode())


def test_clients_of_two_owners_triggers_are_theirs(place: Place, ann: Connection) -> None:
    """They share a worker process, and its threads."""
    place.grant("bob", "X")
    place.grant("bob", "R", b"src")
    for user in ("ann", "bob"):
        place.grant(user, "W", b"out")
    add(ann, "of-ann", "whoami")
    place.put(b"a")
    place.wait("of-ann")
    assert place.copied(b"a", b"f:who") == b"ann"
    ann.triggers.remove("of-ann")
    add(place.of_user("bob"), "of-bob", "whoami")
    for n in range(20):
        place.put(b"b%d" % n)
    place.wait("of-bob")
    assert {place.copied(b"b%d" % n, b"f:who") for n in range(20)} == {b"bob"}


def test_changes_wait_while_the_owner_may_not_read_them(
    place: Place, ann: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    place.grant("ann", "W", b"out")
    add(ann, "t", "copy")
    place.revoke("ann", "R", b"src")
    place.put(b"a")
    assert not place.root.triggers.wait("t", timeout_ms=400)  # some three tries
    place.grant("ann", "R", b"src", family=b"f")
    place.wait("t")
    assert place.copied(b"a") == b"1"
    assert place.dead_letters("t") == []
    assert sum("trigger t cannot read region" in one.getMessage() for one in caplog.records) == 1


def test_a_trigger_is_added_by_who_may_read_all_that_it_reads(place: Place) -> None:
    place.grant("ann", "X")
    ann = place.of_user("ann")
    assert refused(lambda: add(ann, "t", "copy"))
    place.grant("ann", "R", b"src", family=b"g")
    assert refused(lambda: add(ann, "t", "copy"))
    place.grant("ann", "R", b"src", family=b"f")
    look = {"look": [("other", "other", "f:key")]}
    add(ann, "t", "copy")
    ann.triggers.remove("t")
    assert refused(lambda: add(ann, "t", "look", **look))
    place.grant("ann", "R", b"other")
    add(ann, "t", "look", **look)
    place.revoke("ann", "X")
    assert refused(lambda: ann.triggers.remove("t"))


def test_the_owner_is_who_adds_whatever_the_registration_says(place: Place, ann: Connection) -> None:
    def owners() -> dict[str, str]:
        listed = place.root.triggers.list()
        return {one.name: one.registration.owner for one in listed if one.registration is not None}

    registration = b'{"name":"t","table":"src","function":"%s:copy","families":["f"],"owner":"root","attempts":1}'
    ann.call("columnarTriggerAdd", registration % MODULE.encode())
    assert owners() == {"t": "ann"}
    add(place.root, "t", "copy")  # it is there already
    assert owners() == {"t": "ann"}
    place.put(b"a")
    (error,) = place.dead_letters("t")
    assert DENIED in error


def test_who_syncs_owns_the_triggers_that_change(place: Place, ann: Connection) -> None:
    def synced(connection: Connection, *registrations: bytes) -> dict[str, str]:
        connection.call("columnarTriggerSync", [], list(registrations))
        listed = place.root.triggers.list()
        return {one.name: one.registration.owner for one in listed if one.registration is not None}

    def declared(name: str, attempts: int) -> bytes:
        return (
            f'{{"name":"{name}","table":"src","function":"{MODULE}:copy","families":["f"],"attempts":{attempts},'
            f'"of_module":"{MODULE}"}}'
        ).encode()

    assert synced(place.root, declared("a", 1), declared("b", 1)) == {"a": ROOT, "b": ROOT}
    assert synced(ann, declared("a", 2), declared("b", 1)) == {"a": "ann", "b": ROOT}
    listed = Shell(place.address).json("trigger", "list")
    assert {one["name"]: one["owner"] for one in listed} == {"a": "ann", "b": ROOT}


def test_who_may_add_triggers_changes_the_effects_of_anothers_and_does_not_own_it(
    place: Place, ann: Connection
) -> None:
    add(ann, "t", "copy", writes=["out"])
    place.grant("bob", "X")
    assert refused(lambda: add(place.of_user("bob"), "t", "copy", writes=["other", "out"])), "bob may not read src"
    place.grant("bob", "R", b"src")
    for writes, allow in (["other", "out"], False), (["out", "src"], True):
        add(place.of_user("bob"), "t", "copy", writes=writes, allow_cycle=allow, allow_expiry=allow)
        (listed,) = place.root.triggers.list()
        found = listed.registration
        assert found is not None
        assert (list(found.writes), found.allow_cycle, found.allow_expiry) == (writes, allow, allow)
        assert found.owner == "ann"
    with pytest.raises(StoreIllegalArgument, match="exists with other settings"):
        add(place.of_user("bob"), "t", "copy", attempts=2)


def test_a_user_is_dropped_without_triggers_alone(place: Place, ann: Connection) -> None:
    """Else they would act for the next user of the name."""
    for name in ("t", "u"):
        add(ann, name, "copy")
    add(place.root, "v", "copy")
    with pytest.raises(StoreIllegalArgument, match=r"ann owns the triggers t, u, which .* remove .*; then drop ann"):
        place.root.call("columnarDropUser", "ann")
    assert place.root.call("columnarPermissions"), "nothing was dropped"
    place.root.triggers.pause("t")
    place.root.triggers.remove("u")
    with pytest.raises(StoreIllegalArgument, match="ann owns the triggers t, which"):
        place.root.call("columnarDropUser", "ann")
    place.root.triggers.remove("t")
    place.root.call("columnarDropUser", "ann")
    assert place.root.call("columnarPermissions") == []


def test_a_view_is_added_by_who_may_read_its_sources(place: Place) -> None:
    place.grant("ann", "XC")
    ann = place.of_user("ann")
    definition = b'{"version":1,"name":"v","spread":1,"sources":[{"table":"src","key":["f:v"]}]}'
    assert refused(lambda: ann.call("columnarViewAdd", definition))
    place.grant("ann", "R", b"src")
    ann.call("columnarViewAdd", definition)
    other = definition.replace(b'"src"', b'"other"')
    assert refused(lambda: ann.call("columnarViewRebuild", "v", other))
    place.grant("ann", "R", b"v")
    assert refused(lambda: ann.call("columnarViewRebuild", "v", other)), "it shows another table"
    assert place.root.views.wait("v", timeout_ms=50_000)
    ann.call("columnarViewRebuild", "v", b"")


def test_previous_cells_are_those_of_the_columns_that_the_owner_may_read(place: Place) -> None:
    place.grant("ann", "X")
    place.grant("ann", "R", b"src", family=b"f", qualifier=b"v")
    place.grant("ann", "W", b"out")
    ann = place.of_user("ann")
    add(place.root, "wide", "previous", before=True)
    add(ann, "t", "previous", before=True, row=False, columns=[b"f:v"])
    for value in (b"1", b"2"):
        place.root.table(b"src").put(b"a", {b"f:v": value, b"f:secret": b"top"})
        place.wait("t")
        place.wait("wide")
    assert place.copied(b"a", b"g:t") == b"f:v=1"
    assert place.copied(b"a", b"g:wide") == b"f:secret=top,f:v=1"


@pytest.mark.skipif(os.getuid() != 0, reason="another user's process is started by root")
def test_root_alone_acts_as_another_user(place: Place) -> None:
    with pytest.raises(WrongArgument, match="give user and password"):
        Connection("127.0.0.1", place.serving.store.port, user="ann")
    holder = place.serving.store.serving.rights
    assert holder is not None
    sign_in = holder.sign_in
    assert sign_in is not None
    sign_in.known_uid = lambda _uid: "bob"  # type: ignore[method-assign]  # as if bob's process connected
    assert place.of_user("bob").call("columnarWhoAmI").user == b"bob"
    with pytest.raises(NotConnected, match="bob may not act as another user"):
        place.of_user("ann")
    sign_in.known_uid = lambda _uid: ROOT  # type: ignore[method-assign]
    with pytest.raises(NotConnected):
        place.of_user("no name")
    with pytest.raises(NotConnected):
        place.of_user("@group")


def test_a_queue_is_served_with_the_rights_of_its_owner_and_a_url_needs_more(place: Place) -> None:
    place.root.queue("jobs").push(b"a")
    place.grant("ann", "X")
    ann, function = place.of_user("ann"), f"{MODULE}:of_message"
    with pytest.raises(StoreIOError, match=DENIED):
        ann.queues.serve("jobs", function)  # it would pop the queue
    place.grant("ann", "RW")
    with pytest.raises(StoreIOError, match=DENIED):
        ann.queues.serve("jobs", url="http://169.254.169.254/latest/meta-data")
    ann.queues.serve("jobs", function)
    ends_s = time.monotonic() + 50
    while place.copied(b"a", b"f:who") != b"ann":
        assert time.monotonic() < ends_s
        time.sleep(0.01)
    place.root.queues.serve("jobs", url="http://127.0.0.1:9/")
    with pytest.raises(StoreIOError, match=DENIED):
        place.of_user("bob").queues.served()
