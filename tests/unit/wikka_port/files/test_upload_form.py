"""Forms with files: every cut of the stream gives the same, and none is kept whole in memory."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.files import upload_form
from wikka_port.files.upload_form import BadForm, FileBegins, FileEnds, FilePiece, UploadForm

TYPE = 'multipart/form-data; boundary="AaB03x"'
CONTENT = b"\r\n--AaB03\r\n\r\nAaB03x--AaB03x\r\r\n-" + bytes(range(256)) * 3 + b"\r\n--"


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    of_file = f'; filename="{filename}"\r\nContent-Type: image/png' if filename is not None else ""
    head = f'--AaB03x\r\nContent-Disposition: form-data; name="{name}"{of_file}\r\n\r\n'
    return head.encode() + content + b"\r\n"


FORM = part("csrf", b"token") + part("note", "schärfer".encode()) + part("file", CONTENT, "Grüße.png")
FORM += part("file", b"", "") + part("alt", b"late") + b"--AaB03x--\r\n"


def read(form: bytes, sizes: list[int], content_type: str = TYPE) -> tuple[list[object], UploadForm]:
    """Return the events, with the pieces of a file joined."""
    reader, events, rest = UploadForm(content_type), list[object](), form
    for size in [*sizes, *[upload_form.READ_BYTES] * (len(form) // upload_form.READ_BYTES + 1)]:
        events += reader.feed(rest[:size])
        rest = rest[size:]
    reader.finish()
    joined = list[object]()
    for event in events:
        if isinstance(event, FilePiece) and isinstance(joined[-1], FilePiece):
            joined[-1] = FilePiece(joined[-1].content + event.content)
        else:
            joined.append(event)
    return joined, reader


def test_fields_come_before_the_file_and_any_cut_reads_the_same() -> None:
    before = {"csrf": "token", "note": "schärfer"}
    expected = [
        FileBegins("file", "Grüße.png", before),
        FilePiece(CONTENT),
        FileEnds(),
        FileBegins("file", "", before),
        FileEnds(),
    ]
    rng = random.Random(393)
    for sizes in ([], [1] * len(FORM), *([rng.randint(1, 90) for _ in range(60)] for _ in range(40))):
        found, reader = read(FORM, sizes)
        assert found == expected
        assert reader.fields == {**before, "alt": "late"}


@settings(max_examples=60)
@given(st.lists(st.sampled_from([b"\r\n", b"--AaB03x", b"--", b"-", b"\r", b"\n", b"AaB03", b"x"]), max_size=12))
def test_a_file_of_almost_boundaries_is_whole(parts: list[bytes]) -> None:
    content = b"".join(parts)
    if b"\r\n--AaB03x" in b"\r\n" + content + b"\r":
        return  # such a content cannot be sent with this boundary
    found, _ = read(part("file", content, "a") + b"--AaB03x--\r\n", [1] * 40)
    assert b"".join(one.content for one in found if isinstance(one, FilePiece)) == content


def test_what_stands_around_the_parts_is_passed_over() -> None:
    form = (
        b"This is a form.\r\n" + part("a", b"1").replace(b"3x\r\n", b"3x \t\r\n") + b"--AaB03x--\r\nbye" + bytes(70_000)
    )
    found, reader = read(form, [3] * 40)
    assert (found, reader.fields) == ([], {"a": "1"})
    read(b"--AaB03x--", [])  # a form of no part


def test_the_first_of_equal_fields_counts() -> None:
    form = part("csrf", b"one") + part("csrf", b"two") + b"--AaB03x--\r\n"
    assert read(form, [])[1].fields == {"csrf": "one"}


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "multipart/form-data",
        "multipart/mixed; boundary=a",
        "multipart/form-data; boundary=" + "a" * 201,
    ],
)
def test_other_types_are_refused(content_type: str) -> None:
    with pytest.raises(BadForm, match="boundary"):
        UploadForm(content_type)


@pytest.mark.parametrize(
    "form",
    [
        b"",
        FORM[:-12],
        FORM[:40],
        part("note", b"a" * (upload_form.FIELD_BYTES_MAX + 1)) + b"--AaB03x--\r\n",
        b"".join(part(f"n{n}", b"a" * 16_000) for n in range(10)) + b"--AaB03x--\r\n",
        b"".join(part(f"n{n}", b"") for n in range(upload_form.PARTS_MAX + 1)) + b"--AaB03x--\r\n",
        b"--AaB03x\r\nX: " + b"a" * (3 * upload_form.READ_BYTES),
        b"--AaB03x\r\nContent-Type: text/plain\r\n\r\na\r\n--AaB03x--\r\n",
        b"--AaB03x\r\n\xff\xfe: x\r\n\r\na\r\n--AaB03x--\r\n",
        b"a" * (3 * upload_form.READ_BYTES),
        FORM.replace(b"x\r\n", b"xx\r\n", 2),
        b"--AaB03x" + b" " * 300 + b"\r\n\r\n",
        part("a", b"").replace(b"form-data", b"attachment") + b"--AaB03x--",
        part("a", b"").replace(b"name", b"nam") + b"--AaB03x--",
    ],
)
def test_broken_forms_and_those_beyond_a_bound_are_refused(form: bytes) -> None:
    with pytest.raises(BadForm):
        read(form, [])


@settings(max_examples=100)
@given(st.binary(max_size=80), st.integers(0, len(FORM)))
def test_any_bytes_are_read_or_refused(rest: bytes, cut: int) -> None:
    try:
        read(FORM[:cut] + rest, [7] * 20)
    except BadForm:
        return


@pytest.mark.parametrize(
    "piece",
    [
        bytes(upload_form.READ_BYTES),
        b"\r\n--AaB03" * 6_000,
        b"--AaB03x" * 8_000,
        b"\r" * 65_000,
        b"\n--AaB03x\n" * 5_000,
    ],
)
def test_a_long_file_never_fills_the_memory(piece: bytes) -> None:
    reader = UploadForm(TYPE)
    list(reader.feed(part("file", b"", "a")[:-2]))
    received, most = 0, 0
    for _ in range(40):
        received += sum(len(one.content) for one in reader.feed(piece) if isinstance(one, FilePiece))
        most = max(most, len(reader._buffer))
    assert most <= 100, "what may be the beginning of a boundary"
    assert received >= 40 * len(piece) - 100
