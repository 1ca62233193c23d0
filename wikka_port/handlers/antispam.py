"""The settings of antispam, for administrators: a form, and the history of its changes (``antispam.policy``)."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.audit import note_settings
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.policy import FIRST_EDITS, SWITCHES, BadPolicy, Policy, changed_policy
from wikka_port.antispam.stored_policy import CHANGED, policy_history, read_policy, write_policy
from wikka_port.forms import answer_form, form_page
from wikka_port.kept_settings import TYPED_BELOW
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import site_path

LISTS = ("words", "domains", "answers")
FIELDS = ("page_links", "comment_links", "suggestion_links", "form_seconds", "first_edits", "question", *LISTS)
CHANGE = "antispam settings"  # of the audit
_CHOICES = {
    "accept": N_("are saved as all others"),
    "mark": N_("are saved, and their note says so"),
    "review": N_("wait for an administrator"),
}
assert _CHOICES.keys() == set(FIRST_EDITS), "each choice has its words"


def handle_antispam(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()
    stored = read_policy(site.accounts.rows)

    def form(status: int, problem: str) -> Response:
        typed = request.form if request.method == "POST" else {}
        values = {
            "fields": {**fields_of(stored.policy), **{key: typed[key] for key in FIELDS if key in typed}},
            "switches": {key: key in typed if typed else getattr(stored.policy, key) for key in SWITCHES},
            "revision": stored.revision if status == 409 else typed.get("revision", stored.revision),
            "choices": {key: _(words) for key, words in _CHOICES.items()},
            "history": [(one, differences(one.policy)) for one in policy_history(site.accounts.rows)],
            "problem": problem,
        }
        return form_page(site, request, "antispam.html", status=status, **values)

    def change() -> Response:
        given = {key: request.form.get(key, "") for key in FIELDS if key in request.form}
        given |= {key: "yes" if key in request.form else "no" for key in SWITCHES}
        if request.form.get("revision", "") != stored.revision:
            raise Refused(f"{_(CHANGED)} {_(TYPED_BELOW)}", 409)
        try:
            policy = changed_policy(stored.policy, given)
            if policy != stored.policy:
                by, now_ms = site.visitor.signature, site.accounts.clock_ms()
                write_policy(site.accounts.rows, stored.revision, policy, by=by, now_ms=now_ms)
                names, network = changed_names(stored.policy, policy), client_of(request).network
                note_settings(site.accounts.audit, CHANGE, names, by=by, network=network)
        except BadPolicy as bad:
            raise Refused(str(bad), 400) from None
        return redirect(site_path("antispam"))

    return answer_form(site, request, form, change)


def fields_of(policy: Policy) -> dict[str, str]:
    """Return the settings as the fields of a form: a list is a text of an entry a line."""
    values = {key: getattr(policy, key) for key in FIELDS}
    return {key: "\n".join(value) if key in LISTS else str(value) for key, value in values.items()}


def changed_names(before: Policy, policy: Policy) -> list[str]:
    """Return the names of the settings that differ."""
    return [key for key in (*FIELDS, *SWITCHES) if getattr(before, key) != getattr(policy, key)]


def differences(policy: Policy) -> dict[str, str]:
    """Return the settings that differ from the defaults, in one line each."""
    usual = fields_of(Policy())
    found = {key: value.replace("\n", ", ") for key, value in fields_of(policy).items() if value != usual[key]}
    return found | {key: "no" for key in SWITCHES if not getattr(policy, key)}
