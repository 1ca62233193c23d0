"""``{{interwikilist}}``: the other wikis that a prefix leads to."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.markup.fragments import escape
from wikka_port.markup.interwiki import SITES


def run(call: ActionCall) -> str:
    rows = "".join(f'<tr><th scope="row">{prefix}</th><td>{escape(url)}</td></tr>\n' for prefix, url in SITES.items())
    return f'<div class="table" tabindex="0"><table><tbody>\n{rows}</tbody></table></div>\n'
