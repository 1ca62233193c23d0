"""``{{color c="red" text="words"}}``: words in a colour, of names or ``#rrggbb``; ``bg`` colours what is behind.

``fg`` and ``hex`` are other words for ``c``.  The colour is the nearest that can be read in light and dark
(``colours``).
"""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.colours import nearest
from wikka_port.markup.fragments import escape
from wikka_port.texts import _


def run(call: ActionCall) -> str:
    typed = call.arguments
    classes = []
    for kind, asked in (("ink", typed.get("c") or typed.get("fg") or typed.get("hex")), ("paper", typed.get("bg"))):
        if asked:
            name = nearest(asked)
            if name is None:
                raise ValueError(_('"{asked}" is no colour; write a name or #rrggbb', asked=asked))
            classes.append(f"{kind}-{name}")
    if not classes:
        raise ValueError(_("{given} should be a colour", given='c="..."'))
    return f'<span class="{" ".join(classes)}">{escape(typed.get("text", ""))}</span>'
