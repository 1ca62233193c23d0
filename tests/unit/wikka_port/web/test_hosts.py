"""The names by which a wiki on loopback answers: a page whose own name leads to this machine is not served."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.support.wiki_client import WikiClient
from wikka_port.commands.run import run
from wikka_port.commands.serve import serve
from wikka_port.commands.serving_options import as_arguments
from wikka_port.hosts import Hosts, checked_name

OURS = ["localhost", "LocalHost:8080", "localhost.", "127.0.0.1", "127.0.0.1:8080", "127.1.2.3", "[::1]", "[::1]:8080"]
FOREIGN = ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1", "[bad"]


@pytest.mark.parametrize("host", OURS)
def test_names_and_addresses_of_loopback_are_answered(host: str) -> None:
    assert WikiClient().get("/api/titles", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_name_reads_nothing_and_writes_nothing(host: str) -> None:
    web = WikiClient()
    web.save("/Secret_plans", "the words")
    for path in ("/Secret_plans", "/Secret_plans/edit", "/api/titles", "/health", "/-/recentchanges.xml"):
        answer = web.get(path, headers={"Host": host})
        assert answer.status_code == 403, path
        assert "the words" not in answer.text
        assert "Set-Cookie" not in answer.headers
    assert "--allow-host" in answer.text, "the next step"
    fields = {**web.form("/Secret_plans/edit"), "body": "other words"}
    assert web.post("/Secret_plans/edit", fields, headers={"Host": host}).status_code == 403
    assert web.wiki.page("Secret plans").body == "the words"


def test_what_the_page_says_of_the_name_is_escaped() -> None:
    assert "<script" not in WikiClient().get("/", headers={"Host": "<script>alert(1)</script>"}).text.split("<main")[1]


def test_a_name_that_is_allowed_is_answered_and_no_other() -> None:
    web = WikiClient(allow_host=("wiki.example",))
    answers = {"wiki.example": 200, "WIKI.example.:443": 200, "localhost": 200, "x.wiki.example": 403}
    for host, status in answers.items():
        assert web.get("/api/titles", headers={"Host": host}).status_code == status, host


def test_a_page_cannot_help_itself_with_a_proxys_header() -> None:
    web = WikiClient(proxies=1)
    for header in ("X-Forwarded-Host", "Forwarded", "X-Forwarded-Server"):
        value = "host=localhost" if header == "Forwarded" else "localhost"
        assert web.get("/api/titles", headers={"Host": "evil.example", header: value}).status_code == 403


def test_beyond_loopback_every_name_is_answered() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        assert WikiClient(host=host).get("/api/titles", headers={"Host": "wiki.example"}).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])
def test_what_is_loopback(host: str) -> None:
    assert Hosts.of(host, ()).refusal("evil.example") is not None


def test_a_request_without_a_host_comes_from_no_browser() -> None:
    assert Hosts.of("127.0.0.1", ()).refusal(None) is None


def test_names_are_checked_and_made_alike() -> None:
    assert checked_name("Wiki.Example.") == "wiki.example"
    assert checked_name("bücher.example") == "xn--bcher-kva.example"
    for wrong in ("http://wiki.example", "wiki.example:8080", "wiki.example/x", "", "*", "a b"):
        with pytest.raises(ValueError, match="write it as wiki"):
            checked_name(wrong)


@pytest.mark.parametrize("command", [serve, run])
def test_both_commands_take_names_and_say_what_is_wrong_with_one(command: object) -> None:
    result = CliRunner().invoke(command, ["--allow-host", "http://wiki.example"])  # type: ignore[arg-type]
    assert result.exit_code == 2
    assert "write it as wiki.example" in " ".join(result.output.replace("│", " ").split())


def test_wikka_run_gives_each_name_on() -> None:
    assert as_arguments({"allow_host": ("a.example", "b.example"), "proxies": 1}) == [
        "--allow-host=a.example",
        "--allow-host=b.example",
        "--proxies=1",
    ]
