"""Errors as answers: each class of the error tree has its status, and what clients need to act."""

from __future__ import annotations

import json
from asyncio import Future
from typing import Any

import pytest

from columnar import errors
from columnar.wire.http.exchange import Response
from columnar.wire.http.problems import Problem, problem_response, status_of


def told(error: Exception) -> tuple[int, dict[str, str], dict[str, Any]]:
    response = problem_response(error)
    assert isinstance(response.body, bytes)
    members = json.loads(response.body)
    assert members["status"] == response.status
    assert response.headers[0] == ("Content-Type", "application/problem+json")
    return response.status, dict(response.headers), members


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.IllegalArgument("x"), 400),
        (errors.NotALong(3), 400),
        (errors.SignInRefused("x"), 401),
        (errors.AccessDenied("u", "t", "READ"), 403),
        (errors.TableNotFound("t"), 404),
        (errors.ScannerNotFound(7), 404),
        (errors.TableExists("t"), 409),
        (errors.NotAllowed("x"), 409),
        (errors.RequestTooBig("x"), 413),
        (errors.PutTooBig(b"f:q", 2, 1), 413),
        (errors.Throttled("t", "x", 1_500, "10req/sec"), 429),
        (errors.SignInBusy("x", 7), 429),
        (errors.RegionTooBusy("x"), 503),
        (errors.NotServingRegion("x"), 503),
        (errors.OutcomeUnknown("x"), 504),
        (errors.DamagedData("x"), 500),
        (errors.HostError("x"), 500),
        (ValueError("secret"), 500),
    ],
)
def test_statuses(error: Exception, status: int) -> None:
    found, headers, members = told(error)
    assert found == status
    assert ("Retry-After" in headers) == (status in (429, 503))
    assert (members.get("outcome") == "unknown") == (status == 504)
    if isinstance(error, errors.ColumnarError):
        assert members["error"] == type(error).__name__
        assert members["exception"] == error.hbase_class
    else:
        assert "secret" not in json.dumps(members)


def test_every_class_of_the_tree_has_a_status_that_says_who_must_act() -> None:
    """A new class falls to the status of its base; the bases are those of the tree."""

    def classes(kind: type) -> list[type]:
        return [kind, *(found for one in kind.__subclasses__() for found in classes(one))]

    def status(kind: type) -> int:
        return status_of(kind.__new__(kind))

    assert {status(kind) for kind in classes(errors.CallerError)} <= {400, 401, 403, 404, 409, 413}
    assert {status(kind) for kind in classes(errors.RetryLater)} <= {429, 503}
    assert {status(kind) for kind in classes(errors.OutcomeUnknown)} == {504}
    assert {status(kind) for kind in classes(errors.DamagedData) + classes(errors.HostError)} == {500}


def test_how_long_to_wait() -> None:
    assert told(errors.Throttled("t", "x", 1_500, "l"))[1]["Retry-After"] == "2"
    assert told(errors.Throttled("t", "x", 1, "l"))[1]["Retry-After"] == "1"
    assert told(errors.SignInBusy("x", 7))[1]["Retry-After"] == "7"
    assert told(errors.RegionUnavailable("r", Future.__new__(Future)))[1]["Retry-After"] == "1"


def test_credentials_are_asked_for() -> None:
    names = [name for name, _ in problem_response(errors.SignInRefused("x")).headers]
    assert names.count("WWW-Authenticate") == 2


def test_a_port_has_problems_of_its_own() -> None:
    status, headers, members = told(Problem(422, "no date", {"pointer": "/a/b"}, headers=[("Link", "<x>")]))
    assert (status, headers["Link"], members["pointer"], members["detail"]) == (422, "<x>", "/a/b", "no date")


@pytest.mark.parametrize("header", [("X", "a\r\nb: c"), ("X", "a\nb"), ("X", "\x00"), ("X\r", "a"), ("", "a")])
def test_a_header_cannot_begin_another_one(header: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="control character"):
        Response(200, (header,))
