"""Owners of regions: epochs rise, what is behind stays behind until the region is open, the JSON is read back."""

from __future__ import annotations

import pytest

from columnar.model.owner import (
    Incarnation,
    Owner,
    OwnershipPeriod,
    find_unreplayed_logs,
    first_owner,
    from_json,
    given_up,
    incarnation_of,
    moved,
    redirected,
    renumbered,
    settled,
    source_closed,
    source_fenced,
    taken_from_dead,
    to_json,
)

S1, S2, S3 = Incarnation("s1", 4), Incarnation("s2", 17), Incarnation("s3", 1)


def test_an_incarnation_is_written_as_its_name_and_number() -> None:
    assert str(S2) == "s2.17"
    assert incarnation_of("s2.17") == S2
    assert incarnation_of("rack.7.3") == Incarnation("rack.7", 3)


@pytest.mark.parametrize("text", ["", "s2", "s2.", ".17", "s2.x", "s2.-1", "s2.١"])
def test_other_texts_name_no_incarnation(text: str) -> None:
    with pytest.raises(ValueError, match="names no incarnation"):
        incarnation_of(text)


def test_a_moved_region_waits_for_its_source() -> None:
    owner = moved(first_owner(S1, 8), S2)
    assert owner == Owner(S2, 9, 0, OwnershipPeriod(S1, 8))


def test_a_dead_owner_whose_log_names_the_region_is_behind() -> None:
    owner = taken_from_dead(first_owner(S1, 8), S2, in_log=True)
    assert owner == Owner(S2, 9, 0, None, (OwnershipPeriod(S1, 8),))


def test_a_dead_owner_whose_log_does_not_name_the_region_is_not_behind() -> None:
    assert taken_from_dead(first_owner(S1, 8), S2, in_log=False) == Owner(S2, 9)


def test_logs_that_nobody_brought_in_stay_behind() -> None:
    """The second owner died before it had opened the region; the third one needs both logs."""
    second = taken_from_dead(first_owner(S1, 8), S2, in_log=True)
    third = taken_from_dead(second, S3, in_log=False)
    assert third == Owner(S3, 10, 0, None, (OwnershipPeriod(S1, 8),))
    assert moved(third, S1).unreplayed_logs == (OwnershipPeriod(S1, 8),)


def test_an_open_region_has_nothing_behind() -> None:
    owner = taken_from_dead(first_owner(S1, 8), S2, in_log=True)
    assert settled(owner) == Owner(S2, 9)
    assert settled(moved(first_owner(S1, 8), S2)) == Owner(S2, 9)


def test_the_json_of_an_owner_is_read_back() -> None:
    owner = Owner(S3, 10, 2, OwnershipPeriod(S2, 9), (OwnershipPeriod(S1, 7), OwnershipPeriod(S1, 8)))
    assert from_json(to_json(owner)) == owner
    assert to_json(owner) == (
        b'{"behind": [["s1.4", 7], ["s1.4", 8]], "epoch": 10, "from": ["s2.17", 9], "generation": 2, "server": "s3.1"}'
    )
    assert from_json(to_json(first_owner(S1))) == first_owner(S1)


def test_a_move_that_is_redirected_waits_for_the_same_source() -> None:
    owner = redirected(moved(first_owner(S1, 8), S2), S3)
    assert owner == Owner(S3, 10, 0, OwnershipPeriod(S1, 8))


def test_a_move_that_is_called_off_gives_the_source_the_next_epoch() -> None:
    """Its log holds both epochs, so both are behind when it dies."""
    owner = renumbered(moved(first_owner(S1, 8), S2))
    assert owner == Owner(S1, 10, 0, None, (OwnershipPeriod(S1, 8),))
    assert settled(owner) == owner
    assert taken_from_dead(owner, S2, in_log=True).unreplayed_logs == (OwnershipPeriod(S1, 8), OwnershipPeriod(S1, 10))


def test_a_source_that_closed_with_everything_on_disk_leaves_nothing_behind() -> None:
    again = moved(renumbered(moved(first_owner(S1, 8), S2)), S3)
    assert source_closed(again, is_behind=False) == Owner(S3, 11)
    assert source_closed(again, is_behind=True).unreplayed_logs == (OwnershipPeriod(S1, 8), OwnershipPeriod(S1, 10))


def test_logs_of_others_stay_behind_when_the_source_closes() -> None:
    unopened = moved(taken_from_dead(first_owner(S1, 8), S2, in_log=True), S3)
    assert source_closed(unopened, is_behind=False) == Owner(S3, 10, 0, None, (OwnershipPeriod(S1, 8),))


def test_a_source_that_was_fenced_is_behind_if_its_log_names_the_region() -> None:
    owner = moved(first_owner(S1, 8), S2)
    assert source_fenced(owner, in_log=True) == Owner(S2, 9, 0, None, (OwnershipPeriod(S1, 8),))
    assert source_fenced(owner, in_log=False) == Owner(S2, 9)
    twice = moved(renumbered(owner), S3)
    assert source_fenced(twice, in_log=False).unreplayed_logs == (OwnershipPeriod(S1, 8),), (
        "it did not close, so nothing is known"
    )


def test_an_owner_that_closed_by_itself_is_followed() -> None:
    assert given_up(first_owner(S1, 8), S2, is_behind=False) == Owner(S2, 9)
    assert given_up(first_owner(S1, 8), S2, is_behind=True).unreplayed_logs == (OwnershipPeriod(S1, 8),)


def test_when_all_have_died_logs_count_by_the_row_alone() -> None:
    """A log that names the region at a tenure of which the row knows nothing holds what later owners wrote over."""

    def everything(_tenure: OwnershipPeriod) -> bool:
        return True

    def nothing(_tenure: OwnershipPeriod) -> bool:
        return False

    owner = first_owner(S1, 8)
    assert find_unreplayed_logs(owner, everything) == (OwnershipPeriod(S1, 8),)
    assert find_unreplayed_logs(owner, nothing) == ()
    moving = moved(taken_from_dead(owner, S2, in_log=True), S3)
    assert find_unreplayed_logs(moving, nothing) == (OwnershipPeriod(S1, 8),)
    assert find_unreplayed_logs(moving, everything) == (
        OwnershipPeriod(S1, 8),
        OwnershipPeriod(S2, 9),
        OwnershipPeriod(S3, 10),
    )
    clean = source_closed(moved(owner, S2), is_behind=False)
    assert find_unreplayed_logs(clean, lambda tenure: tenure.server == S1) == ()
