"""Rows of files: their bytes, their order, and no race of uploads and sweeps that loses a content in use."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.golden import hold_to
from wikka_port import schema
from wikka_port.files import file_rows
from wikka_port.files.file_rows import BlobState, CurrentFile, FileVersion, Upload, version_cells
from wikka_port.names import page_key

HISTORY = page_key("Home Page")
SHA = "0123456789abcdef" * 4
PLACE, OTHER = b"00000000000000aa", b"00000000000000bb"
VERSION = FileVersion(
    name="Grüße aus Ulm.png",
    number=3,
    previous="0123456789abcdef",
    sha256=SHA,
    size_bytes=1_234_567,
    media_type="image/png",
    time_ms=1_790_000_000_000,
    author="Ada",
    signed="account",
    note="sharper",
    alt="The minster: seen from below",
    width=4000,
    height=3000,
    metadata="removed",
)
REMOVED = replace(VERSION, number=4, previous=VERSION.token, sha256="", size_bytes=0, media_type="", width=0, height=0)
UPLOAD = Upload(
    place=PLACE,
    state="open",
    writer="77",
    owner="0f" * 16,
    page="Home Page",
    name="a b.txt",
    length_bytes=5_000_000,
    stored_bytes=1_048_576,
    time_ms=1_790_000_000_000,
    fields='{"note":"x"}',
    history=HISTORY,
    found=file_rows.FoundContent("image/png", 4000, 3000, "removed").pack(),
)


def cells(record: object) -> bytes:
    cells = version_cells(record) if isinstance(record, FileVersion) else schema.cells_of(record)
    return b"\n".join(column + b"=" + value for column, value in cells.items())


def test_golden_bytes() -> None:
    row = file_rows.version_row(HISTORY, VERSION)
    start, stop = file_rows.versions_of_file(HISTORY, VERSION.name)
    hold_to(
        "wiki-files.txt",
        {
            "row of a version": row,
            "version": cells(VERSION),
            "removed": cells(REMOVED),
            "current": CurrentFile.of(VERSION).pack(),
            "current, removed": CurrentFile.of(REMOVED).pack(),
            "column of the current": file_rows.file_column(VERSION.name),
            "start of a file's versions": start,
            "stop of a file's versions": stop,
            "blob": BlobState("live", PLACE, 1_234_567).pack(),
            "blob being swept": BlobState("sweeping", PLACE, 1_234_567, b"77").pack(),
            "reference": file_rows.reference_column(row),
            "upload": cells(UPLOAD),
        },
    )


def test_records_are_read_as_they_were_written() -> None:
    for version in (VERSION, REMOVED):
        assert FileVersion(**schema.fields_in(FileVersion, schema.cells_of(version))) == version
        current = CurrentFile.of(version)
        assert file_rows.parse_current_file(current.pack()) == current
        row = file_rows.version_row(HISTORY, version)
        assert file_rows.parse_version_row(row) == (HISTORY, version.name, version.number, version.token)
    assert [CurrentFile.of(one).is_there for one in (VERSION, REMOVED)] == [True, False]
    assert Upload(PLACE, **schema.fields_in(Upload, schema.cells_of(UPLOAD))) == UPLOAD
    assert file_rows.parse_found(UPLOAD.found).pack() == UPLOAD.found
    for state in (BlobState("live", PLACE, 0), BlobState("gone", OTHER, 9, b"x")):
        assert file_rows.parse_blob_state(state.pack()) == state


@pytest.mark.parametrize(
    "cell", [b"", b"1", b"0:1", b"x:0123456789abcdef:::0x0:", CurrentFile.of(VERSION).pack()[:-60], b"live"]
)
def test_damaged_cells_are_refused(cell: bytes) -> None:
    for parse in (file_rows.parse_current_file, file_rows.parse_blob_state, file_rows.parse_version_row):
        with pytest.raises(ValueError, match="is no"):
            parse(cell)


@pytest.mark.parametrize(
    "cell", [b"dead:%s:1:" % PLACE, b"live:x:1:", b"live:%s:y:" % PLACE, b"live:%s:1" % PLACE, b"live:%s:1::" % PLACE]
)
def test_damaged_states_are_refused(cell: bytes) -> None:
    with pytest.raises(ValueError, match="no state"):
        file_rows.parse_blob_state(cell)


def test_the_files_of_a_page_leave_out_what_cannot_be_read() -> None:
    row = {
        file_rows.file_column("a.png"): CurrentFile.of(VERSION).pack(),
        file_rows.file_column("b.png"): b"rubbish",
        schema.BODY: b"text",
    }
    assert file_rows.files_in(row) == {"a.png": CurrentFile.of(VERSION)}


def test_each_field_counts_for_the_token() -> None:
    changed: list[FileVersion] = [VERSION, replace(VERSION, note="sharpe", alt="r" + VERSION.alt)]
    for name, value in schema.fields_in(FileVersion, schema.cells_of(VERSION)).items():
        other = value + 1 if isinstance(value, int) else value + "x"
        changed.append(replace(VERSION, **{name: other}))
    assert len({one.token for one in changed}) == len(changed)


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6)


@settings(max_examples=50)
@given(NAMES, NAMES, st.integers(1, 10**9), st.integers(1, 10**9))
def test_newer_versions_come_first_and_files_do_not_mix(name: str, other: str, one: int, two: int) -> None:
    rows = [file_rows.version_row(HISTORY, replace(VERSION, name=name, number=number)) for number in (one, two)]
    assert (rows[0] < rows[1]) == (one > two)
    start, stop = file_rows.versions_of_file(HISTORY, name)
    assert all(start <= row < stop for row in rows)
    stranger = file_rows.version_row(HISTORY, replace(VERSION, name=other, number=one))
    assert (start <= stranger < stop) == (name == other)
    first, last = file_rows.versions_of_page(HISTORY)
    assert all(first <= row < last for row in (*rows, stranger))
    assert not HISTORY + schema.revision_row(HISTORY, schema.Head(1, b"0123456789abcdef"))[32:] < stop < last


def test_names_that_a_link_cannot_tell_apart_have_one_key() -> None:
    assert len({file_rows.lookup_key(name) for name in ("A b.PNG", "a_b.png", "Á_B.png")}) == 1
    assert file_rows.lookup_key("ab.png") != file_rows.lookup_key("a b.png")


def test_a_damaged_content_is_replaced_by_the_upload_of_an_equal_one() -> None:
    for life in ("live", "sweeping"):
        before = BlobState(life, PLACE, 5, b"" if life == "live" else b"1")  # type: ignore[arg-type]
        assert file_rows.state_after_upload(before, OTHER, 5) == BlobState("live", PLACE, 5)
        assert file_rows.state_after_upload(before, OTHER, 5, is_damaged=True) == BlobState("live", OTHER, 5)
        assert file_rows.state_after_upload(before, OTHER, 6) == BlobState("live", OTHER, 6)


# --- uploads and sweeps in every order ---------------------------------------------------------

Step = Generator[None, None, None]


class Store:
    """The cells that uploads and sweeps of one content share; each step between two yields is one call."""

    def __init__(self) -> None:
        self.state: BlobState | None = None
        self.references: set[str] = set()
        self.versions: set[str] = set()
        self.places: set[bytes] = set()

    def swap(self, before: BlobState | None, after: BlobState) -> bool:
        if self.state != before:
            return False
        self.state = after
        return True

    def check(self) -> None:
        if self.versions:
            assert self.state is not None, self.versions
            assert self.state.life != "gone"
            assert self.state.place in self.places


def upload(store: Store, name: str, place: bytes) -> Step:
    store.places.add(place)
    yield
    store.references.add(name)
    yield
    while True:
        before = store.state
        yield
        after = file_rows.state_after_upload(before, place, 5)
        if before == after or store.swap(before, after):
            break
        yield
    yield
    store.versions.add(name)  # stage and commit: from now on readers need the blob
    yield
    if after.place != place:
        store.places.discard(place)


def sweep(store: Store, mark: bytes) -> Step:
    before = store.state
    yield
    marked = before and file_rows.state_of_sweep(before, mark, "mark")
    if before is None or marked is None or not store.swap(before, marked):
        return
    yield
    referred = bool(store.references)
    yield
    after = file_rows.state_of_sweep(marked, mark, "give up" if referred else "drop")
    assert after is not None
    if not store.swap(marked, after) or referred:
        return
    yield
    store.places.discard(marked.place)


def run_in_order(order: tuple[int, ...], make: Callable[[Store], list[Step]], begin: BlobState | None) -> Store:
    store = Store()
    store.state = begin
    if begin is not None:
        store.places.add(begin.place)
    actors = make(store)
    for index in order:
        next(actors[index], None)
        store.check()
    for actor in actors:
        for _ in actor:
            store.check()
    store.check()
    return store


def test_no_order_of_an_upload_and_a_sweep_loses_the_content() -> None:
    live = BlobState("live", PLACE, 5)
    outcomes = set()
    for chosen in itertools.combinations(range(12), 5):
        order = tuple(int(step in chosen) for step in range(12))
        store = run_in_order(order, lambda s: [upload(s, "one", OTHER), sweep(s, b"1")], live)
        assert store.state is not None
        assert store.places == {store.state.place}, "nothing is orphaned"
        outcomes.add(store.state.place)
    assert outcomes == {PLACE, OTHER}, "both ends of the race happen"


@settings(max_examples=300)
@given(
    st.lists(st.integers(0, 3), max_size=40),
    st.sampled_from([None, BlobState("live", b"00000000000000cc", 5), BlobState("gone", b"00000000000000cc", 5, b"9")]),
)
def test_two_uploads_and_two_sweeps_lose_nothing(order: list[int], begin: BlobState | None) -> None:
    def actors(store: Store) -> list[Step]:
        return [upload(store, "one", PLACE), upload(store, "two", OTHER), sweep(store, b"1"), sweep(store, b"2")]

    store = run_in_order(tuple(order), actors, begin)
    assert store.versions == {"one", "two"}
