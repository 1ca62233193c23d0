"""Blocks of accounts and networks, for administrators: listed, made and lifted (``rights.blocks``).

GET /-/blocks        the blocks in force, and the form for one; ?target= fills it in
POST add             block
POST remove          lift a block
"""

from __future__ import annotations

import logging
import secrets

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.forms import answer_form, form_page
from wikka_port.rights.blocks import REASON_CHARS, BadBlock, Block, target_of, until_of
from wikka_port.site import Site, redirect
from wikka_port.store import StoreUnavailable
from wikka_port.texts import _
from wikka_port.urls import site_path

log = logging.getLogger(__name__)
USUAL = "1 day"  # that the form offers
TYPED_CHARS = 254


def handle_blocks(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()

    def form(status: int, problem: str) -> Response:
        given = request.form if request.method == "POST" else request.args
        values = {
            "blocks": sorted(site.wiki.rights.blocks().all, key=lambda one: -one.made_ms),
            "target": given.get("target", "")[:TYPED_CHARS],
            "until": given.get("until", USUAL)[:TYPED_CHARS],
            "reason": given.get("reason", "")[:REASON_CHARS],
            "accounts": "accounts" in given,
            "problem": problem,
        }
        return form_page(site, request, "blocks.html", status=status, **values)

    def change() -> Response:
        fields = request.form
        target, until, reason = (fields.get(key, "") for key in ("target", "until", "reason"))
        try:
            if "remove" in fields:
                lift_block(site, fields["remove"], client_of(request).network)
            else:
                made = new_block(site, target, until, reason, accounts="accounts" in fields)
                add_block(site, made, client_of(request).network)
        except BadBlock as bad:
            raise Refused(str(bad), 400) from None
        return redirect(site_path("blocks"))

    return answer_form(site, request, form, change)


def new_block(site: Site, target: str, until: str, reason: str, *, accounts: bool) -> Block:
    """Return the block that the words mean.  Raises BadBlock."""
    user, network = target_of(target[:TYPED_CHARS])
    now_ms = site.accounts.clock_ms()
    if user:
        account = site.accounts.directory.account(user)
        if account is None or account.status == "deleted":
            raise BadBlock(_("There is no user “{name}”, and no address is written so.", name=user))
        if account.admin:
            raise BadBlock(_("{name} is an administrator: no block stops administrators.", name=account.name))
        user = account.name
    return Block(
        id=secrets.token_hex(8),
        user=user,
        network=network,
        until_ms=until_of(until, now_ms),
        reason=" ".join(reason.split())[:REASON_CHARS],
        by=site.visitor.signature,
        made_ms=now_ms,
        accounts=accounts and bool(network),
    )


def add_block(site: Site, block: Block, network: str = "") -> None:
    """Block, in every process within a second.  Raises BadBlock, StoreUnavailable."""
    site.wiki.rights.add_block(block)
    _note(site, "blocked", block, network)


def lift_block(site: Site, block_id: str, network: str = "") -> Block | None:
    """Lift a block; return it, or None if there is none (any more).  Raises StoreUnavailable."""
    found = next((one for one in site.wiki.rights.blocks().all if one.id == block_id), None)
    if found is not None:
        site.wiki.rights.remove_block(found.id)
        _note(site, "block lifted", found, network)
    return found


def _note(site: Site, what: str, block: Block, network: str) -> None:
    try:
        by = site.visitor.signature
        site.accounts.audit.note(what, user=block.target, by=by, note=block.reason, network=network)
    except StoreUnavailable as away:
        log.warning("%s, of %s, is not in the audit: %s", what, block.target, away)
