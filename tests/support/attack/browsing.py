"""A page of a real browser that notes everything that ran, or was about to run, for the attack corpus.

ran         ``__ran(n)`` was called, or a dialog opened
policy      the browser refused something by the Content-Security-Policy (event and console)
console     it had a message other than of a missing picture or page, or a script of ours failed asked the browser
requested something other than a picture from a foreign host left the browser went to a foreign address, or opened a
window failed the wiki answered with an internal error (500) in a page   markup that would run without the policy:
handlers, styles, foreign elements, schemes of addresses
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.support.page_forms import Form

WATCH: Final = """
window.__ran = (n) => { console.info("ATTACK ran " + n); };
for (const name of ["alert", "confirm", "prompt", "print", "open"])
  window[name] = () => { console.info("ATTACK ran " + name); return null; };
document.addEventListener("securitypolicyviolation", (event) =>
  console.info(`ATTACK policy ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
LOOK: Final = """() => {
  if (document.contentType !== "text/html") return []; // shown by the browser's own viewer of texts
  const found = [];
  const schemes = new Set(["http:", "https:", "mailto:", "ftp:", "news:", "irc:", "nntp:", "tel:", "sms:", "xmpp:"]);
  const foreign = new Set(["IFRAME", "FRAME", "OBJECT", "EMBED", "BASE", "STYLE", "APPLET", "PORTAL", "FOREIGNOBJECT",
    "ANIMATE", "SET", "MATH", "TEMPLATE", "DIALOG", "AUDIO", "VIDEO", "MARQUEE", "SLOT"]);
  for (const one of document.querySelectorAll("*")) {
    const name = one.tagName.toUpperCase();
    const link = one.getAttribute("src");
    if (foreign.has(name)) found.push(`element ${name}`);
    if (name === "SCRIPT" && !/^\\/-\\/static\\//.test(link || "")) found.push("element SCRIPT");
    if (name === "META" && one.httpEquiv) found.push("element META http-equiv");
    for (const attribute of one.attributes) {
      const key = attribute.name.toLowerCase();
      if (key.startsWith("on") || ["style", "srcdoc", "ping", "background", "is", "formtarget"].includes(key))
        found.push(`attribute ${name} ${key}=${attribute.value.slice(0, 60)}`);
      if (["href", "xlink:href", "action", "formaction", "src", "data", "poster", "cite"].includes(key)) {
        let scheme = "";
        try { scheme = new URL(attribute.value, document.baseURI).protocol; } catch { continue; }
        const picture = key === "src" && name === "IMG" && scheme === "data:";
        if (!schemes.has(scheme) && !picture) found.push(`address ${name} ${key}=${attribute.value.slice(0, 60)}`);
        if ((key === "action" || key === "formaction") && !new URL(attribute.value, document.baseURI).href
          .startsWith(location.origin + "/")) found.push(`form to ${attribute.value.slice(0, 60)}`);
      }
    }
  }
  return [...new Set(found)];
}"""
# Chromium says the second of a page whose field was typed into before the first frame, as a program does.
_EXPECTED: Final = ("Failed to load resource", "Autofocus processing was blocked")


class Watched:
    """A page of a browser; ``findings`` says what ran, and where."""

    def __init__(self, context: Any, url: str) -> None:
        self.url = url
        self.findings: list[str] = []
        self.seen = 0
        context.add_init_script(WATCH)
        context.on("page", self._another)
        self.page = context.new_page()
        self.page.set_default_timeout(90_000)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.note(f"a script failed: {error}"))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)
        self.page.on("dialog", self._dialog)

    def note(self, what: str) -> None:
        self.findings.append(f"{self.page.url}: {what}")

    def _said(self, message: Any) -> None:
        if not message.text.startswith(_EXPECTED):
            self.note(message.text[:300])

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url + "/", "data:image/")) and request.resource_type != "image":
            self.note(f"asked for {request.resource_type} {request.url[:120]}")

    def _answered(self, answer: Any) -> None:
        if answer.status == 500:
            self.note(f"the wiki failed at {answer.url[:120]}")

    def _dialog(self, dialog: Any) -> None:
        if dialog.type == "beforeunload":  # the editor asks before a typed text is left
            dialog.accept()
            return
        self.note(f"a dialog: {dialog.message[:80]}")
        dialog.dismiss()

    def _another(self, page: Any) -> None:
        if hasattr(self, "page"):
            self.note("another window was opened")
            page.close()

    def show(self, path: str) -> None:
        try:
            self.page.goto(self.url + path, wait_until="load")
        except Exception as problem:  # a feed, or a file: there is no page to look at
            if "Download is starting" not in str(problem) and "ERR_ABORTED" not in str(problem):
                raise
            return
        self.look()

    def look(self) -> None:
        """Check the page that is shown now."""
        self.seen += 1
        if not self.page.url.startswith(self.url + "/"):
            self.note("it left the wiki")
        for found in self.page.evaluate(LOOK):
            self.note(found)

    def has(self, form: Form) -> bool:
        return bool(self.page.evaluate(SEND, [form.action, sorted(form.names() - {""}), {}, "", False, False]))

    def send(self, form: Form, fields: dict[str, str], button: str = "") -> None:
        """Fill the form in the page that is shown, press the named button, and check the answer."""
        by_script = bool(self.page.evaluate("typeof wikkaEditor !== 'undefined'")) and button in ("save", "preview")
        wanted = [form.action, sorted(form.names() - {""}), fields, button, True, by_script]
        if by_script and button == "preview":
            with self.page.expect_response(lambda answer: answer.url.endswith("/-/preview")):
                self.page.evaluate(SEND, wanted)
        elif by_script:  # another page takes the place of this one, or its main part does
            self.page.evaluate(SEND, wanted)
            self.page.wait_for_selector(ANOTHER, state="attached")
            self.page.wait_for_load_state("load")
        else:
            with self.page.expect_navigation(wait_until="load"):
                self.page.evaluate(SEND, wanted)
        self.look()


ANOTHER: Final = "main:not([data-before])"  # an expression would be evaluated, which the policy of the page refuses
# By the form's own submit, so that no bound of an input keeps a payload back; a field that is missing is added.
SEND: Final = """([action, names, fields, button, send, byScript]) => {
  const namesOf = (form) => [...new Set([...form.elements].map((one) => one.name).filter(Boolean))].sort();
  const place = (address) => (address || "").split("?")[0];
  const fits = (form) => place(form.getAttribute("action")) === place(action);
  const form = [...document.forms].find((one) => fits(one) && names.every((name) => namesOf(one).includes(name)));
  if (!form || !send) return Boolean(form);
  form.noValidate = true;
  window.onbeforeunload = null;
  for (const [name, value] of Object.entries(fields)) {
    const found = [...form.elements].filter((one) => one.name === name && one.tagName !== "BUTTON");
    if (!found.length) {
      const made = Object.assign(document.createElement("textarea"), { name });
      form.append(made);
      found.push(made);
    }
    for (const control of found) {
      if (control.type === "file") continue; // a script cannot choose one; test_files_pages sends them
      if (control.type === "checkbox" || control.type === "radio") control.checked = true;
      if (control.tagName === "SELECT") control.append(new Option(value, value));
      if (["number", "email"].includes(control.type)) control.type = "text";
      control.value = value;
    }
  }
  document.querySelector("main").dataset.before = "1";
  const pressed = [...form.elements].find((one) => one.tagName === "BUTTON" && one.name === button);
  if (byScript && pressed) form.requestSubmit(pressed);
  else {
    if (pressed && button) form.append(Object.assign(document.createElement("input"),
      { type: "hidden", name: button, value: pressed.value }));
    if (pressed?.getAttribute("formaction")) form.action = pressed.formAction;
    HTMLFormElement.prototype.submit.call(form);
  }
  return true;
}"""


@contextmanager
def watched(browser: Any, url: str, **options: Any) -> Iterator[Watched]:
    context = browser.new_context(**options)
    try:
        yield Watched(context, url)
    finally:
        context.close()
