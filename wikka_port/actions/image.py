"""``{{image url=".." alt=".." title=".." class=".." link=".." width="200" height="100"}}``: a picture.

``src`` is another word for ``url``; ``link`` is an address or the name of a page.
"""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.markup.embedded import user_classes
from wikka_port.markup.fragments import escape
from wikka_port.markup.targets import is_url, safe_picture, safe_url
from wikka_port.names import normalise
from wikka_port.texts import _
from wikka_port.urls import page_path


def run(call: ActionCall) -> str:
    typed = call.arguments
    url = safe_picture(typed.get("url", "") or typed.get("src", ""))
    if url is None:
        raise ValueError(_("{given} should be the address of a picture", given='url="..."'))
    alt = typed.get("alt", "") or typed.get("title", "")
    parts = [f'src="{escape(url)}" alt="{escape(alt)}" loading="lazy" referrerpolicy="no-referrer"']
    if typed.get("title"):
        parts.append(f'title="{escape(typed["title"])}"')
    css = user_classes(typed.get("class", ""))
    if css:
        parts.append(f'class="{css}"')
    parts += [f'{side}="{call.number(side, 1, 5_000)}"' for side in ("width", "height") if typed.get(side, "").strip()]
    picture = f"<img {' '.join(parts)}>"
    link = typed.get("link", "").strip()
    if not link:
        return picture
    if is_url(link):
        return f'<a href="{escape(safe_url(link) or "")}" class="external" rel="nofollow noopener">{picture}</a>'
    return f'<a href="{escape(page_path(normalise(link)))}">{picture}</a>'
