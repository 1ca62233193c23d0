"""The site's settings in the browser: what they change, when, for whom; what wins over them; and their history."""

from __future__ import annotations

import random
import re

import pytest
from werkzeug.test import TestResponse

from tests.support.file_forms import PNG, upload
from tests.support.wiki_client import WikiClient
from wikka_port.accent_colours import LEAST, contrast, darker, for_dark_pages, least_contrast, style_sheet
from wikka_port.accounts.audit import Audit
from wikka_port.kept_settings import SettingsChanged
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.rights.stored import RIGHTS_AGE_S, StoredRights
from wikka_port.site_settings import (
    KEPT,
    BadSetting,
    SiteSettings,
    changed_settings,
    effective,
    pack_settings,
    present_settings,
    settings_in,
)


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("HomePage", "one", author="Olga", base=0)
    return made


@pytest.fixture
def root(web: WikiClient) -> WikiClient:
    return web.signed_in("Root", admin=True)


def change(browser: WikiClient, **fields: str) -> TestResponse:
    return browser.post("/-/site", {**browser.form("/-/site"), "save": "1", **fields})


def test_the_name_is_on_every_page_and_in_the_feed(web: WikiClient, root: WikiClient) -> None:
    assert "· Wiki</title>" in web.get("/HomePage").text
    assert change(root, name="Rivers & <tides>").status_code == 303
    for path in ("/HomePage", "/-/login", "/-/recentchanges", "/Nowhere", "/HomePage/print"):
        assert "Rivers &amp; &lt;tides&gt;</title>" in web.get(path).text, path
    assert "Rivers &amp; &lt;tides&gt;" in web.get("/-/recentchanges.xml").text
    web.wiki.away = True
    assert "Rivers &amp; &lt;tides&gt;" in web.get("/HomePage").text, "the error page has it, too"
    web.wiki.away = False
    assert change(root, name="").status_code == 303
    assert "· Wiki</title>" in web.get("/HomePage").text


def test_the_audit_has_each_change_and_nothing_else(web: WikiClient, root: WikiClient) -> None:
    audit = Audit(web.wiki.rows, lambda: 0)
    assert change(root).status_code == 303
    assert audit.recent(9) == [], "nothing was changed"
    assert change(root, name="Rivers", colour="#0a6c74").status_code == 303
    assert change(root, colour="blue").status_code == 400
    [one] = audit.recent(9)
    assert (one.what, one.by, one.note) == ("site settings", "Root", "name, colour")
    audit.note("site settings", user="", by="Root")
    assert "Settings of the site changed" in root.get("/-/audit").text


def test_a_change_counts_in_every_process_within_a_second(web: WikiClient) -> None:
    clock = [0.0]
    there = StoredRights(web.wiki.rows, lambda: clock[0])
    assert present_settings(there, web.config).name == "Wiki"
    KEPT.write(web.wiki.rows, "", SiteSettings(name="Rivers"), by="Root", now_ms=1)
    assert present_settings(there, web.config).name == "Wiki"
    clock[0] += RIGHTS_AGE_S
    assert RIGHTS_AGE_S < 1
    assert present_settings(there, web.config).name == "Rivers"


def test_a_view_makes_no_call_for_them(web: WikiClient, root: WikiClient) -> None:
    change(root, name="Rivers", colour="#0a6c74")
    web.get("/HomePage")
    web.wiki.calls.clear()
    web.wiki.clock_s += 1
    web.get("/HomePage")
    assert "rows.row" not in web.wiki.calls


def test_what_was_given_to_the_process_wins_and_the_page_says_so(web: WikiClient) -> None:
    given = WikiClient(web.wiki, site_name="Given", registration="closed")
    root = given.signed_in("Root", admin=True)
    assert change(root, name="Stored", registration="open", markup="markdown").status_code == 303
    shown = root.get("/-/site").text
    assert shown.count("It was given to the process") == 2
    assert 'value="Stored"' in shown
    assert "· Given</title>" in given.get("/HomePage").text
    assert given.get("/-/register").status_code == 403
    stored = KEPT.read(web.wiki.rows).value
    assert effective(stored, given.config).markup == "markdown", "it was not given"
    web.wiki.rights.memory.forget()
    assert "· Stored</title>" in web.get("/HomePage").text, "another process"
    assert web.get("/-/register").status_code == 200


def test_registration_and_the_format_of_new_pages(web: WikiClient, root: WikiClient) -> None:
    assert web.get("/-/register").status_code == 200
    assert change(root, registration="invitation", markup="markdown").status_code == 303
    assert web.get("/-/register").status_code == 403
    form = {**web.form("/-/login"), "user": "Zoe", "password": "correct horse battery"}
    assert web.post("/-/register", form).status_code == 403
    web.save("/Fresh", "# A heading")
    assert web.wiki.page("Fresh").markup == "markdown"
    assert web.wiki.page("HomePage").markup == "wikka"
    assert change(root, registration="approval").status_code == 303
    assert web.post("/-/register", form).status_code == 200
    assert "waits to be let in" in root.get("/-/users?q=zoe").text


def test_menus_of_roles(web: WikiClient, root: WikiClient) -> None:
    menus = {
        "menu_visitors": "Start | HomePage\n/-/search?q=tide\nOther | https://example.org/a?b=c&d",
        "menu_users": "River mouth",
        "menu_administrators": "Jobs | /-/jobs",
    }
    assert change(root, **menus).status_code == 303
    nav = re.compile('<nav class="site-nav".*?</nav>', re.S)
    visitor, mia = (nav.search(one.get("/HomePage").text)[0] for one in (web, web.signed_in("Mia")))  # type: ignore[index]
    assert '<a href="/HomePage">Start</a>' in visitor
    assert '<a href="https://example.org/a?b=c&amp;d">Other</a>' in visitor
    assert '<a href="/-/search?q=tide">/-/search?q=tide</a>' in visitor
    assert "Sign in" in visitor
    assert "Index" not in visitor
    assert '<a href="/River_mouth">River mouth</a>' in mia
    assert "Inbox" in mia
    assert "Jobs" not in mia
    own = nav.search(root.get("/HomePage").text)
    assert own is not None
    assert '<a href="/-/jobs">Jobs</a>' in own[0]
    assert "/-/administration" in own[0]
    assert change(root, menu_visitors="").status_code == 303
    assert "Index" in web.get("/HomePage").text


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", "Words | javascript://x", "X | /-/nothing", "| HomePage", "X | ", "X | data:,x", "<"],
)
def test_a_menu_leads_to_pages_and_to_https_alone(web: WikiClient, root: WikiClient, target: str) -> None:
    refused = change(root, menu_visitors=f"Start | HomePage\n{target}", name="kept")
    if refused.status_code == 303:
        addresses = re.findall('href="([^"]*)"', web.get("/HomePage").text)
        assert all(one.startswith(("/", "#")) for one in addresses), "the name of a page"
        return
    assert refused.status_code == 400
    assert 'value="kept"' in refused.text
    assert KEPT.read(web.wiki.rows).value == SiteSettings()


def test_a_colour_must_be_readable_and_is_a_sheet_of_its_own(web: WikiClient, root: WikiClient) -> None:
    refused = change(root, colour="#ffcc00")
    assert refused.status_code == 400
    assert "too light" in refused.text
    better = re.search("(#[0-9a-f]{6}) has it", refused.text)
    assert better is not None
    assert change(root, colour=better[1]).status_code == 303
    page = web.get("/HomePage")
    assert f'<link rel="stylesheet" href="/-/colour.css?c={better[1][1:]}">' in page.text
    sheet = web.get(f"/-/colour.css?c={better[1][1:]}")
    assert (sheet.status_code, sheet.mimetype) == (200, "text/css")
    assert f"--accent: {better[1]}" in sheet.text
    assert "immutable" in sheet.headers["Cache-Control"]
    for wrong in ("red", "#12345", "url(x)", "000000;}", "", "ABCDEG"):
        assert web.get("/-/colour.css", query_string={"c": wrong}).status_code == 404
        assert not wrong or change(root, colour=wrong + "x").status_code == 400


def test_every_colour_that_is_taken_can_be_read() -> None:
    assert round(contrast("#000000", "#ffffff")) == 21
    assert contrast("#777777", "#777777") == 1
    rng = random.Random(39)
    for _ in range(300):
        colour = f"#{rng.randrange(1 << 24):06x}"
        assert least_contrast(darker(colour)) >= LEAST
        light = for_dark_pages(colour)
        assert contrast(light, "#20262a") >= LEAST
        inks = re.findall("--accent: (#[0-9a-f]{6}); --accent-ink: (#[0-9a-f]{6})", style_sheet(darker(colour)))
        assert len(inks) == 4
        assert all(contrast(*pair) >= LEAST for pair in inks)


def test_a_logo_is_a_picture_that_everybody_may_see(web: WikiClient, root: WikiClient) -> None:
    upload(web, ("Logo.png", PNG), ("Plan.txt", b"a text"))
    assert change(root, logo="HomePage/Logo.png", logo_alt="A <wave>").status_code == 303
    assert '<img class="logo" src="/HomePage/files/Logo.png" alt="A &lt;wave&gt;">' in web.get("/HomePage").text
    for logo in ("HomePage/Nothing.png", "HomePage/Plan.txt", "Nowhere/Logo.png", "Logo.png", "/Logo.png", "HomePage/"):
        assert change(root, logo=logo).status_code == 400, logo
    assert KEPT.read(web.wiki.rows).value.logo == "HomePage/Logo.png"
    assert change(root, logo="").status_code == 303
    web.wiki.rights.change("HomePage", PageRights(), "", {Privilege.READ: "Root"})
    assert change(root, logo="HomePage/Logo.png").status_code == 400, "not everybody may see it"


def test_two_administrators_and_the_history(web: WikiClient, root: WikiClient) -> None:
    form = {**root.form("/-/site"), "name": "Late", "save": "1"}
    assert change(root, name="First").status_code == 303
    late = root.post("/-/site", form)
    assert late.status_code == 409
    assert 'value="Late"' in late.text
    assert change(root, name="Second", registration="closed").status_code == 303
    assert change(root).status_code == 303
    assert [(one.by, one.value.name) for one in KEPT.history(web.wiki.rows)] == [("Root", "Second"), ("Root", "First")]
    assert "name: Second; registration: closed" in root.get("/-/site").text
    again = root.post("/-/site", {**form, **root.form_of(late)})
    assert again.status_code == 409, "it was changed once more"
    assert "The history has what counts now" in again.text
    assert root.post("/-/site", {**form, **root.form_of(again)}).status_code == 303
    assert KEPT.read(web.wiki.rows).value == SiteSettings(name="Late", registration="closed")
    with pytest.raises(SettingsChanged):
        KEPT.write(web.wiki.rows, "", SiteSettings(), by="x", now_ms=1)


def test_nobody_else_changes_them(web: WikiClient, root: WikiClient) -> None:
    form = {**root.form("/-/site"), "name": "Mine"}
    for other in (web, web.signed_in("Mia")):
        assert other.get("/-/site").status_code == 403
        assert other.post("/-/site", {**other.form("/-/login"), **form}).status_code == 403
    assert root.post("/-/site", {**form, "csrf": "0.0"}).status_code == 403
    assert KEPT.read(web.wiki.rows).value == SiteSettings()


def test_lists_and_blocks_and_settings_leave_each_other_alone(web: WikiClient, root: WikiClient) -> None:
    change(root, name="Rivers")
    rights = web.wiki.rights
    rights.change_rules("", {Privilege.WRITE: "+"}, rights.present_rules())
    change(root, colour="#0a6c74")
    rights.change_rules("", {Privilege.WRITE: None}, rights.present_rules())
    assert rights.present_rules().lists == {}
    assert KEPT.read(web.wiki.rows).value == SiteSettings(name="Rivers", colour="#0a6c74")


def test_settings_take_no_room_of_the_lists(web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    change(root, menu_users="\n".join(f"Words {number} | HomePage" for number in range(10)))
    monkeypatch.setattr("wikka_port.rights.stored.RULES_BYTES_MAX", 200)
    rights = web.wiki.rights
    rights.change_rules("", {Privilege.WRITE: "+"}, rights.present_rules())
    assert len(rights.present_rules().settings) > 200


def test_damaged_settings_stop_nothing() -> None:
    for cell in (b"", b"{", b"[1]", b'{"name": "x", "colour": "white", "other": 1, "menu_users": ["| |"]}'):
        found = settings_in(cell)
        assert found in (SiteSettings(), SiteSettings(name="x"))
    full = changed_settings(SiteSettings(), {"name": "x", "menu_users": "A | B\nC"})
    assert settings_in(pack_settings(full)) == full
    for wrong in (
        {"name": "x" * 61},
        {"name": "a\x07b"},
        {"nothing": "x"},
        {"registration": "all"},
        {"markup": "html"},
        {"old_zone": "Berlin"},
        {"old_zone": "../zone"},
        {"old_zone": "Europe"},
    ):
        with pytest.raises(BadSetting):
            changed_settings(SiteSettings(), wrong)
    with pytest.raises(BadSetting):
        changed_settings(SiteSettings(), {"menu_users": "\n".join("ABCDEFGHIJKLM")})
