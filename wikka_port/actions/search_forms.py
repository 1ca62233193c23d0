"""Forms in pages: ``{{searchform}}``, ``{{textsearch}}`` and their kin find pages, ``{{newpage}}`` begins one."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall


def search(call: ActionCall) -> str:
    return call.site.fragment("searchform.html", phrase=call.arguments.get("phrase", "")[:300])


def newpage(call: ActionCall) -> str:
    """``template``: the page that the new one begins with."""
    return call.site.fragment("newpage.html", begins_with=call.arguments.get("template", "").strip()[:300])
