"""Handlers: the functions that answer ``/Name/handler`` and ``/-/handler``, named by the words of WikkaWiki.

Each is a function ``handle_...(site, request, name) -> Response``; handlers of the whole wiki get "" as name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.handlers.antispam import handle_antispam
from wikka_port.handlers.blocks import handle_blocks
from wikka_port.handlers.comments import handle_comments
from wikka_port.handlers.deletion import handle_delete, handle_deleted, handle_hide, handle_undelete
from wikka_port.handlers.draft import handle_draft
from wikka_port.handlers.edit import handle_clone, handle_edit, handle_new_page, handle_preview
from wikka_port.handlers.files import handle_file, handle_files, handle_old_download
from wikka_port.handlers.keys import handle_keys
from wikka_port.handlers.lists import (
    handle_actions,
    handle_administration,
    handle_backlinks,
    handle_comments_feed,
    handle_orphaned_pages,
    handle_page_index,
    handle_recent_changes,
    handle_recent_changes_feed,
    handle_recent_comments,
    handle_search,
    handle_suggest,
    handle_tree,
    handle_wanted_pages,
)
from wikka_port.handlers.maintenance import handle_audit, handle_jobs, handle_sizes
from wikka_port.handlers.many_pages import handle_pages
from wikka_port.handlers.moves import (
    handle_mass_delete,
    handle_mass_revert,
    handle_moves,
    handle_rename,
)
from wikka_port.handlers.review import handle_reviews
from wikka_port.handlers.revisions import (
    handle_diff,
    handle_history,
    handle_revert,
    handle_revisions,
    handle_revisions_feed,
)
from wikka_port.handlers.rights import handle_acls, handle_claim
from wikka_port.handlers.settings import handle_account, handle_sessions, handle_settings, handle_theme
from wikka_port.handlers.show import handle_html, handle_print, handle_show
from wikka_port.handlers.sign_in import handle_confirm, handle_login, handle_logout, handle_register, handle_reset
from wikka_port.handlers.site_rights import handle_groups, handle_rights
from wikka_port.handlers.site_settings import handle_colour, handle_site_settings
from wikka_port.handlers.source import handle_grab_code, handle_raw, handle_show_code, handle_summary
from wikka_port.handlers.suggestion import handle_suggestion
from wikka_port.handlers.upload import TAKEN as TAKEN_OF_UPLOADS
from wikka_port.handlers.upload import handle_upload
from wikka_port.handlers.users import handle_users
from wikka_port.handlers.watching import (
    handle_inbox,
    handle_inbox_feed,
    handle_unsubscribe,
    handle_watch,
    handle_watches,
)
from wikka_port.site import Site
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS

Handler = Callable[[Site, Request, str], Response]

HANDLERS: Final[Mapping[str, Handler]] = {
    "account": handle_account,
    "acls": handle_acls,
    "actions": handle_actions,
    "administration": handle_administration,
    "antispam": handle_antispam,
    "audit": handle_audit,
    "backlinks": handle_backlinks,
    "blocks": handle_blocks,
    "claim": handle_claim,
    "clone": handle_clone,
    "colour.css": handle_colour,
    "comments": handle_comments,
    "comments.xml": handle_comments_feed,
    "confirm": handle_confirm,
    "delete": handle_delete,
    "deleted": handle_deleted,
    "diff": handle_diff,
    "draft": handle_draft,
    "edit": handle_edit,
    "file": handle_file,
    "files": handle_files,
    "files.xml": handle_old_download,
    "grabcode": handle_grab_code,
    "held": handle_reviews,
    "groups": handle_groups,
    "hide": handle_hide,
    "history": handle_history,
    "html": handle_html,
    "inbox": handle_inbox,
    "inbox.xml": handle_inbox_feed,
    "jobs": handle_jobs,
    "keys": handle_keys,
    "login": handle_login,
    "logout": handle_logout,
    "massdelete": handle_mass_delete,
    "massrevert": handle_mass_revert,
    "moves": handle_moves,
    "newpage": handle_new_page,
    "orphanedpages": handle_orphaned_pages,
    "pageindex": handle_page_index,
    "pages": handle_pages,
    "preview": handle_preview,
    "print": handle_print,
    "raw": handle_raw,
    "recentchanges": handle_recent_changes,
    "recentchanges.xml": handle_recent_changes_feed,
    "recentcomments": handle_recent_comments,
    "register": handle_register,
    "rename": handle_rename,
    "reset": handle_reset,
    "revert": handle_revert,
    "revisions": handle_revisions,
    "revisions.xml": handle_revisions_feed,
    "rights": handle_rights,
    "search": handle_search,
    "sessions": handle_sessions,
    "settings": handle_settings,
    "show": handle_show,
    "showcode": handle_show_code,
    "site": handle_site_settings,
    "sizes": handle_sizes,
    "suggest": handle_suggest,
    "suggestion": handle_suggestion,
    "summary": handle_summary,
    "theme": handle_theme,
    "tree": handle_tree,
    "undelete": handle_undelete,
    "unsubscribe": handle_unsubscribe,
    "upload": handle_upload,
    "users": handle_users,
    "wantedpages": handle_wanted_pages,
    "watch": handle_watch,
    "watches": handle_watches,
}
POSTABLE: Final = frozenset(
    {
        *("account", "acls", "claim", "confirm", "edit", "login", "logout", "register", "reset", "revert"),
        *("sessions", "settings", "keys", "draft", "preview", "suggestion", "comments", "held", "blocks", "antispam"),
        *("jobs", "pages", "rights", "site", "users"),
        *("file", "files", "delete", "hide", "massdelete", "massrevert", "moves", "rename", "undelete"),
        *("inbox", "unsubscribe", "watch", "watches"),
    }
)
# The methods that a handler takes beside GET and HEAD.
METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(POSTABLE, ("POST",)),
    "upload": TAKEN_OF_UPLOADS,
}
assert HANDLERS.keys() == PAGE_HANDLERS | SITE_HANDLERS, "urls.py decides which words are handlers"
