"""The command ``wikka``: its subcommands by name, each imported at its first use.

Exit status: 0 success; 1 ``check`` found differences, or the work could not be finished; 2 the arguments are wrong,
or the store cannot be reached.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

from columnar.runtime.standard_streams import open_closed_streams
from wikka_port.interwiki_file import BadInterwiki, load_from_environment

_SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {  # name -> module:command, short help
    "run": ("wikka_port.commands.run:run", "Start a store and the wiki on it: all in one."),
    "serve": ("wikka_port.commands.serve:serve", "Serve the wiki from a store that runs already."),
    "prepare": ("wikka_port.commands.serve:prepare", "Create the tables, the triggers and the first pages."),
    "import": ("wikka_port.commands.import_dump:import_dump", "Bring in a MediaWiki, a DokuWiki, a folder, an export."),
    "import-wikkawiki": (
        "wikka_port.commands.import_wikkawiki:import_wikkawiki",
        "Move a WikkaWiki here, with accounts and rights.",
    ),
    "export": ("wikka_port.commands.export:export", "Write all pages, with revisions, rights and files."),
    "user": ("wikka_port.commands.user:user", "Accounts: make, list and change them, and give out links."),
    "admin-link": ("wikka_port.commands.user:admin_link", "A link that makes an administrator."),
    "acl": ("wikka_port.commands.acl:acl", "Show, set and explain who may do what."),
    "file": ("wikka_port.commands.files:file", "Files of pages: add, list, get, remove, restore, sweep."),
    "antispam": ("wikka_port.commands.antispam:antispam", "Settings of antispam: links, words, sites, a question."),
    "block": ("wikka_port.commands.blocks:block", "Accounts and networks that may write nothing: add, list, remove."),
    "held": ("wikka_port.commands.reviews:reviews", "Edits and comments that antispam keeps: list, accept, refuse."),
    "jobs": ("wikka_port.commands.maintenance:jobs", "The wiki's triggers: their lag, and changes that they gave up."),
    "sizes": ("wikka_port.commands.maintenance:sizes", "How many pages, files and accounts there are."),
    "last-backup": (
        "wikka_port.commands.maintenance:show_backup",
        "When the store's last backup was made.",
    ),
    "rename": ("wikka_port.commands.moves:rename", "Rename a page; links of others follow."),
    "pages": ("wikka_port.commands.pages:pages", "Pages by owner, author, lists, time: listed, changed, deleted."),
    "delete": ("wikka_port.commands.moves:delete", "Delete pages; they can be brought back."),
    "undelete": ("wikka_port.commands.moves:undelete", "List what is deleted; bring a page back."),
    "purge": ("wikka_port.commands.moves:purge", "Remove a deleted page for good."),
    "erase": ("wikka_port.commands.moves:erase", "Erase one revision of a page for good."),
    "revert": ("wikka_port.commands.moves:revert", "Take back all edits of somebody."),
    "check": ("wikka_port.commands.check:check", "Compare every index with the pages; repair."),
    "texts": ("wikka_port.commands.texts:texts", "Make the file of another language, or bring one up to date."),
    "config": ("wikka_port.commands.config:config", "Show the settings, or write a file of them."),
    "synth": ("wikka_port.commands.synth:synth", "Make a synthetic wiki for measuring."),
}


class _Subcommands(click.Group):
    """Takes names and short helps from ``_SUBCOMMANDS``, and imports a command at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return None
        try:
            load_from_environment()  # before the command's modules: it decides which texts are links to other wikis
        except BadInterwiki as problem:
            raise click.ClickException(str(problem)) from None
        module, _, attribute = _SUBCOMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def main(self, *args: Any, **extra: Any) -> Any:
        open_closed_streams()
        try:
            return super().main(*args, **extra)
        except OSError as error:
            from columnar.runtime.file_errors import end_with_line  # sockets and TLS, which --help does without

            end_with_line("wikka", error)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in _SUBCOMMANDS.items()])


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A wiki on a wide-column store.

    \b
    Read and edit it in a browser, all in one command:
      wikka run --data ./data
    Fill it from a dump of a MediaWiki, and see that every index is right:
      wikka import simplewiki.xml.bz2
      wikka check

    Commands that talk to a store take --store HOST:PORT, or the environment's WIKKA_STORE. All settings may be in a
    file wikka.toml: 'wikka config init' writes one.
    """


if __name__ == "__main__":
    main()
