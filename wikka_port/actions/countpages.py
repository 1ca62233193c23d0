"""``{{countpages}}``: how many pages there are, as a number in the text."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall


def run(call: ActionCall) -> str:
    return f"{call.site.wiki.count_pages():,}"
