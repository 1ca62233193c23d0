"""``{{recentchanges limit="20"}}``: the newest changes of the wiki, by day; ``minor="hide"`` leaves out minor edits."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.change_lists import changes
from wikka_port.groupings import by_day


def run(call: ActionCall) -> str:
    minor = call.arguments.get("minor", "").strip().lower() != "hide"
    found, _ = changes(call.site.wiki, minor=minor, limit=call.number("limit", 20, 200))
    return call.site.fragment("changes.html", days=by_day(found, call.site.visitor.settings.zone_info))
