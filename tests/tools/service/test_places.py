"""Places: nobody takes all of them, by whatever addresses."""

from __future__ import annotations

import pytest

from pipeline.errors import Unavailable
from tools.service.places import Asker, Places, TooManyOfYours, counted_address


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
        ("", ""),
        ("a proxy says so", "a proxy says so"),
    ],
)
def test_a_network_of_ipv6_counts_as_one(address: str, counted: str) -> None:
    assert counted_address(address) == counted


def test_one_client_has_its_share_alone() -> None:
    places = Places("films", 4, of_client=2, of_name=9)
    leave = [places.take(Asker("", "a")) for _ in range(2)]
    with pytest.raises(TooManyOfYours, match="2 films are open from your address"):
        places.take(Asker("boss", "a"))
    places.take(Asker("", "b"))
    leave[0]()
    leave[0]()
    assert places.taken == 2
    places.take(Asker("", "a"))
    places.take(Asker("", "c"))
    with pytest.raises(Unavailable, match="4 films are open already"):
        places.take(Asker("", "d"))


def test_one_token_has_its_share_from_wherever() -> None:
    places = Places("films", 9, of_client=2, of_name=3)
    for client in "abc":
        places.take(Asker("ward", client))
    with pytest.raises(TooManyOfYours, match="3 films are open with your token"):
        places.take(Asker("ward", "d"))
    places.take(Asker("boss", "d"))
