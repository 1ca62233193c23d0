"""python -m tests.proofs.wiki_payloads: the whole attack corpus against the wiki in Chromium.

Each payload stands in each construct of the markup, in each action, as the name, author, owner and note of a page,
before each handler, and is typed into each field of each form and each parameter, for three roles.  It is also text and
author of a comment, name, description and content of a file (SVG, HTML, PDF and others), and is in notices of edits, of
moves and of decisions, in feeds and in mails (``tests.support.attack.beside``).  First with the
wiki's Content-Security-Policy, where every report counts; then with the policy switched off in the browser
(``--without-policy``), where whatever escaped would run.

The exit status is 0 if nothing ran, nothing was refused by the policy, and no page had markup that could run.
"""

from __future__ import annotations

import sys
import time

import click
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.attack.campaign import Campaign
from tests.support.attack.payloads import payloads


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--each", default=8, show_default=True, help="Places of a text for each payload.")
@click.option("--names", default=6, show_default=True, help="Pages with hostile names for each handler and role.")
@click.option("--fills", default=1_000, show_default=True, help="Times that each form is filled, at most.")
@click.option("--without-policy", is_flag=True, help="The browser does not keep the Content-Security-Policy.")
def main(each: int, names: int, fills: int, without_policy: bool) -> None:
    """Try every payload in every place and every field."""
    began_s = time.monotonic()
    with sync_playwright() as running:

        def told(stage: str) -> None:
            click.echo(f"{time.monotonic() - began_s:6.0f} s  {stage}", err=True)

        browser = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        campaign = Campaign(browser, each, 1, names, fills, {"bypass_csp": without_policy}, tell=told)
        campaign.run()
        browser.close()
    for finding in campaign.findings[:200]:
        click.echo(finding)
    fields = len(campaign.typed)
    click.echo(
        f"{len(payloads())} payloads, {fields} fields of {len({one for one, _ in campaign.typed})} handlers, "
        f"{campaign.looks} pages looked at in {time.monotonic() - began_s:.0f} s: {len(campaign.findings)} findings"
    )
    sys.exit(bool(campaign.findings))


if __name__ == "__main__":
    main()
