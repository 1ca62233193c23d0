"""``{{recentchanges limit="20"}}``: the newest changes of the wiki, by day."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.groupings import by_day


def run(call: ActionCall) -> str:
    changes, _ = call.site.wiki.changes(limit=call.number("limit", 20, 200))
    return call.site.fragment("changes.html", days=by_day(changes, call.site.visitor.settings.zone_info))
