"""A checker of HTML for the tests of the markup: HTML must be well nested and harmless."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"br", "hr", "img", "col", "wbr"}
HARMFUL = {"script", "style", "iframe", "object", "embed", "form", "input", "base", "meta", "link", "svg", "math"}
SCHEMES = ("http://", "https://", "ftp://", "mailto:", "/", "#", "?", ".")


class Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []  # href, class
        self.text: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HARMFUL:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "formaction", "srcset"):
                self.wrong.append(f"{name}={value}")
            if name in ("href", "src") and ":" in (value or "") and not (value or "").lower().startswith(SCHEMES):
                self.wrong.append(f"{name}={value}")
            if name == "id":
                self.ids.append(value or "")
        if tag == "a":
            given = dict(attrs)
            self.links.append((given.get("href") or "", given.get("class") or ""))
            if "a" in self.stack:
                self.wrong.append("a link in a link")
        if (
            tag in ("p", "h1", "h2", "h3", "h4", "h5", "table", "ul", "ol", "div", "pre", "figure")
            and "p" in self.stack
        ):
            self.wrong.append(f"<{tag}> in a paragraph")
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.stack or self.stack[-1] != tag:
            self.wrong.append(f"</{tag}> while {self.stack[-3:]} are open")
        else:
            self.stack.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        self.wrong.append(f"a declaration: {decl}")


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    if checker.stack:
        checker.wrong.append(f"left open: {checker.stack}")
    if len(set(checker.ids)) != len(checker.ids):
        checker.wrong.append("an id twice")
    if checker.wrong:
        raise AssertionError(f"{checker.wrong} in {html!r}")
    return checker
