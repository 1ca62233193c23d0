"""``{{countpages}}``: how many pages there are, as a number in the text; some seconds old at most."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.texts import figure


def run(call: ActionCall) -> str:
    return figure(call.site.page_count.get())
