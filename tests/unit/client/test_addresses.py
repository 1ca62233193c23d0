"""Addresses as a person types them."""

from __future__ import annotations

import pytest

from columnar.client.addresses import MOST_ADDRESSES, Address, address_of, addresses_of
from columnar.errors import IllegalArgument


def test_several() -> None:
    both = [Address("h1", 9090), Address("h2", 9091)]
    assert addresses_of("h1:9090,h2:9091") == both
    assert addresses_of(["h1", "h2:9091"]) == both
    assert addresses_of(" h1 , h2:9091,h1:9090") == both, "each once"
    assert addresses_of("h1,h2", 7) == [Address("h1", 7), Address("h2", 7)]
    assert addresses_of("[::1]:5,h") == [Address("::1", 5), Address("h", 9090)]
    assert str(Address("::1", 5)) == "[::1]:5"
    assert address_of(str(Address("h", 5))) == Address("h", 5)


@pytest.mark.parametrize("wrong", ["h1:9090,", ",", "h1:9090;h2", "h:99999", ""])
def test_what_is_no_list(wrong: str) -> None:
    with pytest.raises(IllegalArgument, match="is no address: write HOST:PORT"):
        addresses_of(wrong)


def test_none_and_too_many() -> None:
    with pytest.raises(IllegalArgument, match="no address is given"):
        addresses_of([])
    with pytest.raises(IllegalArgument, match=f"a client takes {MOST_ADDRESSES} at most"):
        addresses_of([f"h{n}" for n in range(MOST_ADDRESSES + 1)])
