"""``{{interwikilist}}``: the other wikis that a prefix leads to."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.markup import interwiki
from wikka_port.markup.fragments import escape


def run(call: ActionCall) -> str:
    sites = interwiki.SITES.items()
    rows = "".join(f'<tr><th scope="row">{prefix}</th><td>{escape(url)}</td></tr>\n' for prefix, url in sites)
    return f'<div class="table" tabindex="0"><table><tbody>\n{rows}</tbody></table></div>\n'
