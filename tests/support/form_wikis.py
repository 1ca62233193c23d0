"""Two small wikis with the forms, redirects, cookies and tokens of MediaWiki 1.39 and of DokuWiki 2022-07-31.

What they send was copied from the answers of the real ones (Debian's packages; ``python -m tests.measure.wiki_edits``),
without what a browser shows beside the forms.  They accept what the real ones accept, and refuse as they do:

    FormMediaWiki   a login with the token of its session; a session whose first page was not a view has no token for
                    edits yet; a save with all hidden fields; of two edits of one revision the second is a conflict
    FormDokuWiki    nobody edits who is not signed in; a page that somebody edits is locked for others; a save with an
                    older date is a conflict
"""

from __future__ import annotations

import hashlib
import html
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

PASSWORD = "Replay-pass-60"
UNICODE_CHECK = "ℳ𝒲♥𝓊𝓃𝒾𝒸ℴ𝒹ℯ"


class FormWiki:
    """The pages, with who wrote them; ``refused`` says why saves were not accepted.  Guarded by ``lock``."""

    users: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.url = ""
        self.texts: dict[str, list[tuple[str, str]]] = {}  # by title: text and author of each revision
        self.refused: list[str] = []
        self.views: list[str] = []
        self.sessions: dict[str, str] = {}  # the user of each; empty before the login
        self.saved_first: set[str] = set()  # titles that somebody else saves before the next save

    def session(self, user: str) -> str:
        found = hashlib.md5(f"{user} {len(self.sessions)}".encode()).hexdigest()
        self.sessions[found] = user
        return found

    def write(self, title: str, text: str, author: str) -> None:
        self.texts.setdefault(title, []).append((text, author))

    def answer(self, call: Call) -> None:
        raise NotImplementedError


class Call(BaseHTTPRequestHandler):
    """A request, with its fields and cookies."""

    protocol_version = "HTTP/1.1"
    wiki: FormWiki

    def do_GET(self) -> None:
        self._handle("")

    def do_POST(self) -> None:
        self._handle(self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode())

    def _handle(self, body: str) -> None:
        parts = urlsplit(self.path)
        self.where = unquote(parts.path)
        self.query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.fields = {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True).items()}
        self.cookies = {name: one.value for name, one in SimpleCookie(self.headers.get("Cookie", "")).items()}
        with self.wiki.lock:
            self.wiki.answer(self)

    def send_page(self, status: int, page: str, *cookies: str, location: str = "") -> None:
        data = page.encode()
        self.send_response(status)
        for cookie in cookies:
            self.send_header("Set-Cookie", cookie)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", "text/html; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(wiki: FormWiki) -> Iterator[FormWiki]:
    handler = type("Handler", (Call,), {"wiki": wiki})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        wiki.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield wiki
        finally:
            server.shutdown()
            thread.join()


def hidden(**fields: str) -> str:
    return "".join(f'<input type="hidden" value="{html.escape(v)}" name="{k}"/>' for k, v in fields.items())


class FormMediaWiki(FormWiki):
    users = ("Ann", "Ben", "Cid")

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()  # sessions that have a token for edits
        self.has_main_page = True  # to which a sign-in leads

    def answer(self, call: Call) -> None:
        title = call.query.get("title") or call.where.removeprefix("/index.php/").removeprefix("/index.php")
        title = title.replace("_", " ")
        session = call.cookies.get("my_wiki_session", "")
        user = self.sessions.get(session, "") if session else ""
        if call.where == "/api.php":
            self._list(call)
        elif title == "Special:UserLogin":
            self._login(call, session)
        elif call.query.get("action") == "edit":
            call.send_page(200, self._form(title, session, user))
        elif call.query.get("action") == "submit" and call.command == "POST":
            self._save(call, title, session, user)
        else:
            if user:
                self.secrets.add(session)  # a page for a user has his tokens in its scripts
            self.views.append(title)
            is_there = title in self.texts or (title == "Main Page" and self.has_main_page)
            call.send_page(200 if is_there else 404, "<html>a page</html>")

    def _list(self, call: Call) -> None:
        titles = sorted(self.texts)
        first = titles.index(call.query["apcontinue"].replace("_", " ")) if "apcontinue" in call.query else 0
        pages = ",".join(f'{{"pageid":1,"ns":0,"title":"{title}"}}' for title in titles[first : first + 2])
        more = titles[first + 2 : first + 3]
        onward = f'"continue":{{"apcontinue":"{more[0].replace(" ", "_")}","continue":"-||"}},' if more else ""
        data = f'{{"batchcomplete":true,{onward}"query":{{"allpages":[{pages}]}}}}'.encode()
        call.send_response(200)
        call.send_header("Content-Type", "application/json; charset=utf-8")
        call.send_header("Content-Length", str(len(data)))
        call.end_headers()
        call.wfile.write(data)

    def _login(self, call: Call, session: str) -> None:
        fields, path = call.fields, "path=/; HttpOnly"
        is_known = fields.get("wpName") in self.users and fields.get("wpPassword") == PASSWORD
        is_its_form = bool(session) and fields.get("wpLoginToken") == self._token("login", session)
        if is_its_form and is_known and fields.get("authAction") == "login":
            new = self.session(fields["wpName"])
            cookies = (f"my_wiki_session={new}; {path}", f"my_wikiUserName={fields['wpName']}; Max-Age=9; {path}")
            call.send_page(302, "", *cookies, location=f"{self.url}/index.php/Main_Page")
            return
        made = session or self.session("")
        form = (
            '<form class="mw-htmlform" action="/index.php/Special:UserLogin" method="post" name="userlogin">'
            f'{hidden(title="Special:UserLogin")}<input id="wpName1" name="wpName" size="20" required=""/>'
            '<input id="wpPassword1" name="wpPassword" size="20" type="password"/>'
            '<input name="wpRemember" type="checkbox" value="1" id="wpRemember" />'
            '<button id="wpLoginAttempt" type="submit" name="wploginattempt" value="Log in">Log in</button>'
            '<input id="wpEditToken" type="hidden" value="+\\" name="wpEditToken"/>'
            '<input name="authAction" type="hidden" value="login"/><input name="force" type="hidden"/>'
            f'<input name="wpLoginToken" type="hidden" value="{self._token("login", made)}"/>\n</form>'
        )
        call.send_page(200, form, *([] if session else [f"my_wiki_session={made}; {path}"]))

    def _token(self, salt: str, session: str) -> str:
        return hashlib.md5(f"{salt} {session}".encode()).hexdigest() + "+\\"

    def _edit_token(self, session: str, user: str) -> str:
        return self._token("edit" if session in self.secrets else "lost", session) if user else "+\\"

    def _form(self, title: str, session: str, user: str, second: str = "") -> str:
        revisions = self.texts.get(title, [])
        text = html.escape(revisions[-1][0]) if revisions else ""
        number = str(len(revisions))
        action = f"/index.php?title={quote(title.replace(' ', '_'))}&amp;action=submit"
        fields = {"wpStarttime": "20261128215833", "wpEdittime": "20261128215833", "editRevId": number}
        fields |= {"wpAutoSummary": "d41d8cd98f00b204e9800998ecf8427e", "oldid": "0", "parentRevId": number}
        other = f'<textarea readonly="" id="wpTextbox2" name="wpTextbox2">{html.escape(second)}\n</textarea>'
        return (
            '<form action="/index.php" id="searchform"><input type="search" name="search"></form>'
            f'<form class="mw-editform" id="editform" method="post" action="{action}" enctype="multipart/form-data">'
            f'{hidden(wpUnicodeCheck=UNICODE_CHECK)}<input type="text" name="wpAntispam" id="wpAntispam" value="" />'
            f'<input type="hidden" name="wpSection"/>{hidden(**fields)}<input type="hidden" name="wpScrolltop"/>'
            f"{hidden(format='text/x-wiki', model='wikitext')}"
            f'<textarea id="wpTextbox1" cols="80" rows="25" lang="en" name="wpTextbox1">{text}\n</textarea>'
            "<input type='text' name='wpSummary' value='' id='wpSummary' maxlength='500' />"
            "<input type='submit' name='wpSave' id='wpSave' value='Save changes' />"
            "<input type='submit' name='wpPreview' value='Show preview' />"
            "<input type='submit' name='wpDiff' value='Show changes' />"
            f"{hidden(wpEditToken=self._edit_token(session, user))}{other if second else ''}"
            f"{hidden(mode='text', wpUltimateParam='1')}</form>"
        )

    def _save(self, call: Call, title: str, session: str, user: str) -> None:
        fields, wrong = call.fields, ""
        if title in self.saved_first:
            self.saved_first.discard(title)
            self.write(title, "of somebody else", "127.0.0.2")
        revisions = self.texts.get(title, [])
        token = self._token("edit", session) if user else "+\\"
        if fields.get("wpEditToken") != token:
            wrong = "Sorry! We could not process your edit due to a loss of session data."
        elif fields.get("wpUnicodeCheck") != UNICODE_CHECK or fields.get("wpUltimateParam") != "1":
            wrong = "a form that was cut off"
        elif fields.get("wpAntispam") or "wpPreview" in fields or "wpDiff" in fields or "wpSave" not in fields:
            wrong = "not the button that saves"
        if wrong:
            self.refused.append(wrong)
            call.send_page(200, f"<p>{wrong}</p>" + self._form(title, session, user))
        elif fields["parentRevId"] != str(len(revisions)) and revisions[-1][1] != user:
            call.send_page(200, self._form(title, session, user, fields["wpTextbox1"]))
        else:
            self.write(title, fields["wpTextbox1"].rstrip(), user)
            cookie = f"my_wikiPostEditRevision{len(revisions)}=saved; Max-Age=1200; path=/; HttpOnly"
            call.send_page(302, "", cookie, location=f"{self.url}/index.php/{quote(title.replace(' ', '_'))}")


class FormDokuWiki(FormWiki):
    users = ("ann", "ben", "cid")

    def __init__(self) -> None:
        super().__init__()
        self.locks: dict[str, str] = {}  # the user who edits each page

    def answer(self, call: Call) -> None:
        title = (call.fields.get("id") or call.query.get("id", "start")).replace("_", " ")
        session = call.cookies.get("DokuWiki", "")
        user = self.sessions.get(session, "") if session and "DWbfaa8a9f" in call.cookies else ""
        do = call.fields.get("do") or call.query.get("do", "")
        if do == "login":
            self._login(call, title, session)
        elif do == "edit" and not user:
            call.send_page(403, self._login_form(title))
        elif call.command == "POST":
            self._save(call, title, user)
        elif do == "edit" and self.locks.get(title, user) != user:
            locked = "<p>This page is currently locked for editing by another user. You have to wait.</p>"
            call.send_page(200, locked + self._form(title, user, read_only=' readonly="readonly"'))
        elif do == "edit":
            self.locks[title] = user
            call.send_page(200, self._form(title, user))
        else:
            self.views.append(title)
            call.send_page(200 if title in self.texts or title == "start" else 404, "<html>a page</html>")

    def _login(self, call: Call, title: str, session: str) -> None:
        fields, path = call.fields, "path=/; HttpOnly"
        if call.command == "POST" and fields.get("u") in self.users and fields.get("p") == PASSWORD and session:
            self.sessions[session] = fields["u"]
            location = f"{self.url}/doku.php?id={title}"
            call.send_page(302, "", f"DWbfaa8a9f=YW5u%7C0%7C6KYn%3D; {path}", location=location)
            return
        gone = f"DWbfaa8a9f=deleted; expires=Thu, 01 Jan 1970 00:00:01 GMT; Max-Age=0; {path}"
        made = session or self.session("")
        status = 403 if call.command == "POST" else 200
        call.send_page(status, self._login_form(title), f"DokuWiki={made}; {path}", gone)

    def _login_form(self, title: str) -> str:
        return (
            f'<form id="dw__login" action="/doku.php?id={title}" method="post" accept-charset="utf-8">'
            f'<input type="hidden" name="sectok" value="" />{hidden(id=title, do="login")}'
            '<input name="u" type="text" id="focus__this" class="edit" value="" />'
            '<input name="p" type="password" class="block edit" value="" />'
            '<input name="r" type="checkbox" value="1" /><button value="1" type="submit">Log In</button></form>'
        )

    def _form(self, title: str, user: str, read_only: str = "") -> str:
        revisions = self.texts.get(title, [])
        date = str(1_795_903_558 + len(revisions)) if revisions else ""
        buttons = (
            '<button name="do[save]" value="1" type="submit" accesskey="s">Save</button>'
            '<button name="do[preview]" value="1" type="submit">Preview</button>'
            '<button name="do[cancel]" value="1" type="submit">Cancel</button>'
            '<input name="summary" type="text" class="edit" value="created" />'
        )
        fields = {"sectok": self._token(user), "id": title.replace(" ", "_"), "rev": "0", "date": date}
        return (
            f'<form id="dw__editform" action="/doku.php?id={title.replace(" ", "_")}&amp;do=edit" method="post" '
            f'accept-charset="utf-8" class="doku_form">{hidden(**fields, prefix=".", suffix="", target="section")}'
            f'<textarea name="wikitext" type="textarea" dir="auto"{read_only} cols="80" id="wiki__text" class="edit">'
            f"{html.escape(revisions[-1][0]) if revisions else ''}</textarea>{'' if read_only else buttons}</form>"
        )

    def _token(self, user: str) -> str:
        return hashlib.md5(user.encode()).hexdigest()

    def _save(self, call: Call, title: str, user: str) -> None:
        fields = call.fields
        if title in self.saved_first:
            self.saved_first.discard(title)
            self.write(title, "of somebody else", "dan")
        if fields.get("sectok") != self._token(user) or fields.get("do[save]") != "1" or fields.get("prefix") != ".":
            self.refused.append(f"the form of {title}")
            call.send_page(200, self._form(title, user))
            return
        revisions = self.texts.get(title, [])
        if fields["date"] not in ("", str(1_795_903_558 + len(revisions))):
            conflict = (
                '<h1 id="a_newer_version_exists">A newer version exists</h1><form id="dw__editform" method="post">'
                f'<input type="hidden" name="wikitext" value="{html.escape(fields["wikitext"])}" />'
                '<button name="do[save]" value="1" type="submit">Save</button></form>'
            )
            call.send_page(200, conflict)
            return
        self.write(title, fields["wikitext"], user)
        self.locks.pop(title, None)
        call.send_page(302, "", location=f"{self.url}/doku.php?id={title.replace(' ', '_')}")
