"""``wikka config``: show the wiki's settings, and write a file of them."""

from __future__ import annotations

from functools import partial

from columnar.settings.commands import Described, config_group
from columnar.settings.option_kinds import key_of
from wikka_port.commands.settings import CLIENT, RESTART, RUN, WIKI, WIKKA, command_of
from wikka_port.commands.site_settings import site_settings

TABLES = {
    "wiki": Described(WIKI, partial(command_of, "serve", "serve"), "The wiki, 'wikka serve' and 'wikka run'."),
    "run": Described(RUN, partial(command_of, "run", "run"), "The store that 'wikka run' starts."),
    "client": Described(
        CLIENT,
        partial(command_of, "store_options", "client"),
        "The store that runs already, of all commands but 'wikka run'.",
    ),
}
LIVE = frozenset(key_of(option) for table in (WIKI, CLIENT) for option in table.options()) - RESTART
config = config_group(WIKKA, TABLES, LIVE)
config.add_command(site_settings)
