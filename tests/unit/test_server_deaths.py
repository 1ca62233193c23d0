"""Deaths of servers: pauses of replacements, and starts that are given up."""

from __future__ import annotations

import signal

from columnar.roles.server_processes import DEATHS_WITHIN_S, Death, ServerDeaths, ending


def died(*deaths: tuple[float, int]) -> ServerDeaths:
    found = ServerDeaths()
    for at_s, status in deaths:
        found.add_death("s1", Death(at_s, "s1.1", status))
    return found


def test_a_server_that_a_signal_ended_is_started_again_and_not_for_ever() -> None:
    killed = -signal.SIGKILL
    hopeless = [died(*((float(n), killed) for n in range(deaths))).is_start_hopeless("s1") for deaths in range(5)]
    assert hopeless == [False, False, False, True, True]


def test_a_server_that_ended_by_itself_would_say_the_same_again() -> None:
    assert died((0.0, 2)).is_start_hopeless("s1")
    assert died((0.0, -9), (1.0, 2)).is_start_hopeless("s1")
    assert not died((0.0, 2), (1.0, -9)).is_start_hopeless("s1")
    assert not died((0.0, 2)).is_start_hopeless("s2")


def test_replacements_wait_longer_each_time_from_the_fourth_death_on() -> None:
    assert [died(*((float(n), -9) for n in range(deaths))).pause_s("s1") for deaths in range(9)] == [
        0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 8.0,
    ]  # fmt: skip
    assert ServerDeaths().pause_s("s1") == 0.0


def test_deaths_of_long_ago_count_no_more() -> None:
    first = [(float(n), -9) for n in range(4)]
    assert died(*first, (DEATHS_WITHIN_S + 2.5, -9)).number("s1") == 2
    assert died(*first, (DEATHS_WITHIN_S + 10.0, -9)).number("s1") == 1


def test_an_end_is_said_by_the_name_of_its_signal() -> None:
    assert [ending(status) for status in (-9, -64, 0)] == ["by SIGKILL", "by SIGRTMAX", "with status 0"]
    assert ending(-63) == "by signal 63"
