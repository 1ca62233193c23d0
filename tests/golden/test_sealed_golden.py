"""The bytes of sealed objects, and that each change of them is noticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from columnar.backup import sealing
from columnar.backup.sealing import CHUNK_BYTES, KeySealing, PlainSealing, new_key_text, parse_key
from columnar.errors import CallerError, DamagedData
from tests.support.golden import golden, hold_to

KEY = bytes(range(32))
NAME = "files/" + "ab" * 32


def sealer(key: bytes = KEY) -> KeySealing:
    return KeySealing(key, lambda count: bytes(range(count)))


def sealed(data: bytes, name: str = NAME) -> bytes:
    return b"".join(sealer().sealed(name, iter((data,))))


def opened(data: bytes, name: str = NAME, key: bytes = KEY, step: int = 1 << 20) -> bytes:
    pieces = (data[at : at + step] for at in range(0, len(data), step))
    return b"".join(sealer(key).unsealed(name, pieces))


def test_sealed_bytes_are_those_of_the_page() -> None:
    found = {
        "format-line": sealer().format_line.encode(),
        "file-name": sealer().file_name("cd" * 32).encode(),
        "empty": sealed(b""),
        "short": sealed(b"a table file"),
    }
    hold_to("sealed.txt", found)
    old = golden("sealed.txt")
    assert (opened(old["empty"]), opened(old["short"])) == (b"", b"a table file")


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 1_000_000])
def test_any_size_comes_back_however_it_is_cut(size: int) -> None:
    data = bytes(size)
    held = b"".join(KeySealing(KEY).sealed(NAME, iter((data[:7], data[7:]))))
    assert len(held) == sealer().sealed_size(size)
    assert opened(held) == opened(held, step=100_003) == data


def test_each_changed_byte_and_each_cut_is_noticed() -> None:
    held = sealed(b"a table file")
    for place in range(len(held)):
        changed = bytearray(held)
        changed[place] ^= 1
        with pytest.raises(DamagedData):
            opened(bytes(changed))
    for length in range(len(held)):
        with pytest.raises(DamagedData):
            opened(held[:length])


def test_chunks_that_are_missing_moved_or_of_another_object_are_noticed() -> None:
    head = len(sealing.MAGIC) + sealing.SALT_BYTES
    chunk = CHUNK_BYTES + sealing.TAG_BYTES
    held = sealed(bytes(2 * CHUNK_BYTES + 5))
    first, second = held[head : head + chunk], held[head + chunk : head + 2 * chunk]
    last = held[head + 2 * chunk :]
    for parts in ((second, first, last), (first, second), (first, last), (second, last), (first, second, last, last)):
        with pytest.raises(DamagedData):
            opened(held[:head] + b"".join(parts))
    with pytest.raises(DamagedData):
        opened(held, name="files/another")
    with pytest.raises(DamagedData):
        opened(held, key=bytes(32))


def test_no_two_objects_have_the_same_bytes() -> None:
    once, again = (b"".join(KeySealing(KEY).sealed(NAME, iter((b"same",)))) for _ in range(2))
    assert once[len(sealing.MAGIC) :] != again[len(sealing.MAGIC) :]
    assert opened(once) == opened(again) == b"same"


def test_keys_are_read_from_their_text() -> None:
    assert parse_key(KEY.hex().encode() + b"\n", "k") == KEY
    assert parse_key(new_key_text(), "k") != parse_key(new_key_text(), "k")
    for text in (b"", b"secret", KEY.hex().encode()[:-1], KEY.hex().encode() * 2, KEY):
        with pytest.raises(CallerError, match="k is no key") as caught:
            parse_key(text, "k")
        assert not text or text.decode("latin-1") not in caught.value.text


def test_plain_objects_are_as_they_are() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x"

    plain = PlainSealing()
    assert (plain.file_name("ab"), plain.sealed_size(3), plain.format_line) == ("ab", 3, "columnar-backup 1")
    assert b"".join(plain.sealed(NAME, pieces())) == b"".join(plain.unsealed(NAME, pieces())) == b"x"
