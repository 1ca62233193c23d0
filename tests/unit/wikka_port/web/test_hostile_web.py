"""What strangers type is shown, never run: every handler, every field, every parameter."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.security import headers

BATTERY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "--><script>alert(1)</script>",
    "{{ 7*7 }}{% raw %}<script>",
    "javascript:alert(1)",
    "&lt;script&gt;",
    "\u202e\u2066<b>",
    "]]><script/>",
    "%3Cscript%3E",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
]
PLACES = ["", "/edit", "/revisions", "/history", "/diff", "/diff?style=inline", "/backlinks", "/revert?revision=1"]
SITE = ["/-/recentchanges", "/-/pageindex", "/-/wantedpages", "/-/orphanedpages"]
PARAMETERS = {
    "/P": ["revision", "time", "redirect"],
    "/P/diff": ["a", "b", "style"],
    "/P/revisions": ["below"],
    "/P/history": ["below"],
    "/P/edit": ["revision"],
    "/P/revert": ["revision"],
    "/P/raw": ["revision"],
    "/P/backlinks": ["after"],
    "/-/recentchanges": ["before"],
    "/-/pageindex": ["start", "letter"],
    "/-/wantedpages": ["after"],
    "/-/orphanedpages": ["after"],
    "/-/search": ["q", "go"],
}


class Reader(HTMLParser):
    """Notes what could run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script" and not (given.get("src") or "").startswith("/-/static/"):
            self.found.append("script")
        self.found += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction"):
            value = (given.get(name) or "").strip().lower()
            if value.startswith(("javascript:", "vbscript:", "data:text")):
                self.found.append(f"{tag} {name}={value}")
        if tag in ("iframe", "object", "embed", "base", "style"):
            self.found.append(tag)


def dangers(html: str) -> list[str]:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader.found


@pytest.mark.parametrize("typed", BATTERY)
def test_texts_names_notes_and_authors(typed: str) -> None:
    web = WikiClient(edit_burst=100)
    body = f'{typed}\n""{typed}""\n[[{typed}]]\n{{{{recentchanges}}}}\n'
    body += f'{{{{category page="{typed}"}}}}\n||{typed}||\n%%{typed}%%'
    for number in range(2):
        web.wiki.save(typed, body + str(number), author=typed, note=typed, base=number)
    web.wiki.save("P", f"[[{typed}]]", author=typed, base=0, attribution=typed)
    from wikka_port.urls import page_path

    path = page_path(typed)
    for place in [*(path + place for place in PLACES), "/P", *SITE]:
        answer = web.get(place)
        assert answer.status_code == 200, place
        assert dangers(answer.text) == [], place


@pytest.mark.parametrize("typed", BATTERY)
def test_parameters(typed: str) -> None:
    web = WikiClient()
    web.wiki.save("P", "text", author="a", base=0)
    for path, names in PARAMETERS.items():
        for name in names:
            answer = web.get(path, query_string={name: typed})
            assert answer.status_code in (200, 302, 400, 404), (path, name)
            assert dangers(answer.text) == [], (path, name)
            assert "\n" not in answer.headers.get("Location", "")


@pytest.mark.parametrize("typed", BATTERY)
def test_fields_that_come_back(typed: str) -> None:
    web = WikiClient(edit_burst=100)
    web.wiki.save("P", "theirs", author="a", base=0)
    fields = {**web.form("/P/edit"), "body": typed, "note": typed, "as": typed}
    for changed in ({"preview": "1"}, {"csrf": typed}, {"base": typed}, {"note": typed + "x" * 201}):
        answer = web.post("/P/edit", {**fields, **changed})
        assert answer.status_code in (200, 400, 403, 409), changed
        assert dangers(answer.text) == [], changed


def test_cookies_that_lie() -> None:
    web = WikiClient()
    for value in ("<script>", "x" * 5_000, "\xe9" * 32, "\x7f"):
        for cookie in ("wikka_visitor", "wikka_session"):
            answer = web.get("/P/edit", headers={"Cookie": f"{cookie}={value}"})
            assert answer.status_code == 200
            assert dangers(answer.text) == []


def test_the_headers_are_on_every_answer() -> None:
    web = WikiClient()
    web.wiki.save("P", "text", author="a", base=0)
    tag = web.get("/P").headers["ETag"]
    answers = [web.get(place) for place in ["/P" + place for place in PLACES] + SITE]
    answers += [web.get(place) for place in ("/Nope", "/%00", "/health", "/api/titles", "/P/raw", "/favicon.ico")]
    answers += [web.get("/A/B"), web.client.post("/P"), web.post("/P/edit", {"body": "x"})]
    answers += [web.get("/P", headers={"If-None-Match": tag}), web.save("/P", "changed")]
    web.wiki.away = True
    answers.append(web.get("/P"))
    for answer in answers:
        for key, value in headers(web.config.files.pictures):
            assert answer.headers[key] == value, (answer.request.path, key)
    policy = dict(headers(web.config.files.pictures))["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_broken_requests_are_answered() -> None:
    web = WikiClient()
    form = "application/x-www-form-urlencoded"
    for data, kind in [
        (b"\xff\xfe%zz&&==", form),
        (b"body", "multipart/form-data; boundary=x"),
        (b"body", "multipart/form-data"),
        (b"body=%ff%fe&csrf=%00", form),
        (b"{}", "application/json"),
        (b"&".join(b"a%d=1" % n for n in range(2_000)), form),
    ]:
        answer = web.client.post("/P/edit", data=data, content_type=kind)
        assert answer.status_code in (400, 403, 413), kind
        assert answer.status_code < 500


@pytest.mark.parametrize("place", ["//[", "//[::1", "/[", "//]x", "/\u2029", "//\u2100.example"])
def test_a_place_to_go_on_at_that_is_no_address_leads_home(place: str) -> None:
    answer = WikiClient().get("/-/login", query_string={"next": place})
    assert answer.status_code == 200
    assert WikiClient.form_of(answer)["next"] in ("/", "/[")


def test_places_of_a_conflict_that_no_form_has_are_left_alone() -> None:
    web = WikiClient()
    web.save("/P", "text")
    fields = {**web.form("/P/edit"), "body": "MINE", "choose": "save", "now": "1"}
    answer = web.post(
        "/P/edit", {**fields, **{f"place-{number}": "mine" for number in ("9" * 5_000, "", "-1", "\u0663")}}
    )
    assert answer.status_code == 303
    assert web.get("/P/raw").text == "MINE"


def test_a_method_that_is_not_taken_is_told_which_are() -> None:
    web = WikiClient()
    for path, allowed in {
        "/P": {"GET", "HEAD"},
        "/P/raw": {"GET", "HEAD"},
        "/P/edit": {"GET", "HEAD", "POST"},
        "/-/search": {"GET", "HEAD"},
        "/health": {"GET", "HEAD"},
    }.items():
        answer = web.client.delete(path)
        assert (answer.status_code, set(answer.allow)) == (405, allowed), path
    assert set(web.get("/-/preview").allow) == {"POST"}
