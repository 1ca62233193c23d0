"""Routes: the handler of a method and a path, its parameters, and what is answered where there is none."""

from __future__ import annotations

import pytest

from columnar.wire.http.exchange import Client, Request, Response
from columnar.wire.http.incoming_request import Message
from columnar.wire.http.problems import Problem
from columnar.wire.http.routes import QUERY_PAIRS, Routes, decoded, query_pairs


def named(name: str):  # type: ignore[no-untyped-def]
    return lambda request: Response(200, (), repr((name, dict(request.parameters))).encode())


ROUTES = Routes(
    [
        ("GET", "/version", named("version")),
        ("GET", "/version/cluster", named("cluster")),
        ("GET", "/{table}", named("table")),
        ("DELETE", "/{table}", named("drop")),
        ("GET", "/{table}/schema", named("schema")),
        ("PUT", "/{table}/{row}", named("put")),
        ("GET", "/{table}/{row}", named("row")),
        ("GET", "/{table}/{row}/{rest*}", named("rest")),
        ("POST", "/", named("root")),
    ]
)


def found(method: str, path: str) -> bytes:
    response = ROUTES(Request(method, path, "", {}))
    assert isinstance(response, Response)
    assert isinstance(response.body, bytes)
    return response.body if response.status == 200 else b"%d" % response.status


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", "/version", "('version', {})"),
        ("HEAD", "/version", "('version', {})"),
        ("GET", "/version/cluster", "('cluster', {})"),
        ("GET", "/version/else", "('row', {'table': b'version', 'row': b'else'})"),
        ("DELETE", "/version", "('drop', {'table': b'version'})"),
        ("GET", "/t/schema", "('schema', {'table': b't'})"),
        ("PUT", "/t/schema", "('put', {'table': b't', 'row': b'schema'})"),
        ("GET", "/t/a%2Fb%00%FF", "('row', {'table': b't', 'row': b'a/b\\x00\\xff'})"),
        ("GET", "/t/..", "('row', {'table': b't', 'row': b'..'})"),
        ("GET", "/t/r/a/b//c", "('rest', {'table': b't', 'row': b'r', 'rest': b'a/b//c'})"),
        ("POST", "/", "('root', {})"),
        ("GET", "/t/", "404"),
        ("GET", "//r", "404"),
        ("GET", "/t/r/", "404"),
        ("GET", "*", "('table', {'table': b'*'})"),
        ("GET", "/", "405"),
        ("BREW", "/t", "405"),
        ("GET", "/t/%zz", "400"),
        ("GET", "/t/%2", "400"),
    ],
)
def test_who_answers(method: str, path: str, said: str) -> None:
    assert found(method, path) == said.encode()


def test_a_rest_comes_last() -> None:
    paths = ["/{all*}", "/{table}/{all*}", "/a/{all*}", "/{table}/b"]
    routes = Routes([("GET", path, named(path)) for path in paths])
    wanted = {"/x": "/{all*}", "/x/y/z": "/{table}/{all*}", "/a/b": "/a/{all*}", "/x/b": "/{table}/b"}
    answers = {path: routes(Request("GET", path, "", {})) for path in wanted}
    assert all(f"('{wanted[path]}'".encode() in response.body for path, response in answers.items())


def test_what_is_possible_is_named() -> None:
    response = ROUTES(Request("POST", "/t/r", "", {}))
    assert isinstance(response, Response)
    assert ("Allow", "GET, HEAD, PUT") in response.headers
    assert ROUTES.methods("/version") == ["DELETE", "GET", "HEAD"]


@pytest.mark.parametrize("path", ["version", "/{a}/{a}", "/{rest*}/a", "/{rest*}/{more*}"])
def test_what_is_no_route(path: str) -> None:
    with pytest.raises(ValueError, match="no route"):
        Routes([("GET", path, named("x"))])


def test_two_handlers_of_one_route() -> None:
    with pytest.raises(ValueError, match="two routes"):
        Routes([("GET", "/a", named("x")), ("GET", "/a", named("y"))])


def test_a_query() -> None:
    assert query_pairs("a=1&b=%00%FF&a=x+y&&c&=d&e=f=g") == [
        ("a", b"1"),
        ("b", b"\x00\xff"),
        ("a", b"x y"),
        ("c", b""),
        ("", b"d"),
        ("e", b"f=g"),
    ]
    assert query_pairs("") == []
    with pytest.raises(Problem, match="the limit is"):
        query_pairs("a&" * (QUERY_PAIRS + 1))
    with pytest.raises(Problem, match="%25"):
        decoded("100%")


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b?c=d?e", "/a/b", "c=d?e"),
        ("/?", "/", ""),
        ("*", "*", ""),
        ("http://host:80/a/b?c=/d", "/a/b", "c=/d"),
        ("HTTPS://host", "/", ""),
        ("http://host?c=d", "/", "c=d"),
        ("/a?u=http://b/c", "/a", "u=http://b/c"),
        ("ftp://host/a", "ftp://host/a", ""),
    ],
)
def test_path_and_query_of_a_target(target: str, path: str, query: str) -> None:
    request = Client().request(Message("GET", target, {}, False))
    assert (request.path, request.query) == (path, query)
