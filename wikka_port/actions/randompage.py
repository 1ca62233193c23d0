"""``{{randompage title="Surprise me"}}``: a link to some page, another one at each view."""

from __future__ import annotations

import random

from wikka_port.actions.call import ActionCall
from wikka_port.markup.fragments import escape
from wikka_port.urls import page_path


def run(call: ActionCall) -> str:
    name = call.site.wiki.some_page(f"{random.randrange(16**8):08x}")
    if name is None:
        return ""
    return f'<a href="{escape(page_path(name))}">{escape(call.arguments.get("title", "") or name)}</a>'
