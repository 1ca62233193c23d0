"""Sealed places: they come back whole, tell nothing, and nobody else can make one."""

from __future__ import annotations

import random

import pytest

from tests.support.seeds import seed
from wikka_port.names import MAX_NAME_BYTES, is_name
from wikka_port.sealed_places import PREFIX, SEALED_CHARS, SealedPlaces

SEED = seed(439)
OURS = SealedPlaces(lambda: b"s" * 32)
PLACES = ["A", "Vault/Kryptos", "Größe 潮", "x" * MAX_NAME_BYTES, "a\x01b", "8249999999999" + "0" * 32, "\ud83d"]


@pytest.mark.parametrize("place", PLACES)
def test_a_place_comes_back_and_its_token_is_no_name_and_fits_into_an_address(place: str) -> None:
    token = OURS.sealed("names", place)
    assert OURS.opened("names", token) == place
    assert OURS.sealed("names", place) == token, "in every process the same"
    assert token.startswith(PREFIX)
    assert not is_name(token)
    assert token.isascii()
    assert len(token) <= SEALED_CHARS
    assert "Kryptos" not in token


def test_a_token_tells_neither_the_place_nor_its_length() -> None:
    tokens = [OURS.sealed("names", "x" * length) for length in range(1, 64)]
    assert len(set(tokens)) == len(tokens)
    assert len({len(one) for one in tokens}) == 1
    boxes = [one[len(PREFIX) + 22 :] for one in tokens]
    assert all(one[:8] != other[:8] for one in boxes for other in boxes if one is not other), "no stream comes twice"


def test_a_token_of_another_list_another_wiki_or_of_nobody_is_no_place() -> None:
    token = OURS.sealed("names", "Vault")
    assert OURS.opened("changes", token) == ""
    assert SealedPlaces(lambda: b"t" * 32).opened("names", token) == ""
    rng = random.Random(SEED)
    print(f"COLUMNAR_SEED={SEED}")
    for _ in range(300):
        at = rng.randrange(len(PREFIX), len(token) - 1)  # of the last character some bits are no part of the value
        other = rng.choice("ABCxyz019-_")
        changed = token[:at] + other + token[at + 1 :]
        assert OURS.opened("names", changed) == ("Vault" if changed == token else "")
    for odd in (PREFIX, PREFIX + "A", PREFIX + "A" * 22, PREFIX + "ä", PREFIX + "=" * 9, PREFIX + "A" * 5_000):
        assert OURS.opened("names", odd) == "", odd
    for typed in ("", "Vault", "_", "~", "_foo"):
        assert OURS.opened("names", typed) is None
