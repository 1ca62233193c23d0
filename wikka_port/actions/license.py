"""``{{license type="CC-BY-SA"}}``: under which licence the page may be used; ``{{license type="C" link="Page"}}``."""

from __future__ import annotations

from typing import Final

from wikka_port.actions.call import ActionCall
from wikka_port.markup.fragments import escape
from wikka_port.names import normalise
from wikka_port.texts import N_, _
from wikka_port.urls import page_path

_CREATIVE: Final = "https://creativecommons.org/licenses/{}/4.0/"
_GNU: Final = "https://www.gnu.org/licenses/{}.html"
LICENCES: Final = {
    **{f"CC-{kind}": (f"Creative Commons {kind} 4.0", _CREATIVE.format(kind.lower()))
       for kind in ("BY", "BY-SA", "BY-ND", "BY-NC", "BY-NC-SA", "BY-NC-ND")},
    "CC0": ("Creative Commons Zero", "https://creativecommons.org/publicdomain/zero/1.0/"),
    "PD": (N_("the public domain"), "https://creativecommons.org/publicdomain/mark/1.0/"),
    "GPL": ("GNU General Public License", _GNU.format("gpl-3.0")),
    "GPL2": ("GNU General Public License 2", _GNU.format("old-licenses/gpl-2.0")),
    "LGPL": ("GNU Lesser General Public License", _GNU.format("lgpl-3.0")),
    "AGPL": ("GNU Affero General Public License", _GNU.format("agpl-3.0")),
    "GFDL": ("GNU Free Documentation License", _GNU.format("fdl-1.3")),
}  # fmt: skip


def run(call: ActionCall) -> str:
    kind = call.arguments.get("type", "").strip().upper() or "CC-BY-SA"
    if kind == "C":
        name = call.arguments.get("link", "").strip()
        words = _("All rights reserved")
        return (
            f'<p class="license"><a rel="license" href="{escape(page_path(normalise(name)))}">{words}</a>.</p>'
            if name
            else f'<p class="license">{words}.</p>'
        )
    if kind not in LICENCES:
        raise ValueError(
            _("{given} should be one of {kinds}", given=f'type="{kind}"', kinds=", ".join(("C", *LICENCES)))
        )
    name, url = LICENCES[kind]
    link = f'<a rel="license noopener" class="external" href="{url}">{escape(_(name))}</a>'
    return f'<p class="license">{_("This page may be used under {licence}.", licence=link)}</p>'
