"""The command ``columnar`` with its subcommands by name, each imported when it is called.

This module has a short help line for each subcommand, so that ``columnar --help`` and ``columnar standalone`` import no
other command (the imports of a client alone take 0.2 s).

The exit status is 0 if the command succeeded; 1 if the server refused, or ``trigger wait`` timed out; 2 if the usage
was wrong, or no server could be reached or started.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from columnar.runtime.standard_streams import open_closed_streams
from columnar.version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {  # name -> module:command, short help
    "standalone": ("columnar.roles.store_commands:standalone", "Run the store: everything in one process."),
    "node": ("columnar.roles.store_commands:node", "Run a node of a cluster on many machines."),
    "shell": ("columnar.shell.console:shell", "Type commands at a prompt, or run a script of them."),
    "get": ("columnar.shell.rows:get", "Show one row."),
    "put": ("columnar.shell.rows:put", "Write cells of one row."),
    "delete": ("columnar.shell.rows:delete", "Remove one row, or cells of it."),
    "incr": ("columnar.shell.rows:incr", "Add to a counter."),
    "append": ("columnar.shell.rows:append", "Append to cells of one row."),
    "check-and-put": ("columnar.shell.rows:check_and_put", "Write cells of one row if it is as expected."),
    "scan": ("columnar.shell.scans:scan", "Show many rows, in the order of their keys."),
    "count": ("columnar.shell.scans:count", "Count rows."),
    "tables": ("columnar.shell.tables:tables", "List the tables."),
    "create": ("columnar.shell.tables:create", "Make a table."),
    "describe": ("columnar.shell.tables:describe", "Show a table's families, attributes and triggers."),
    "alter": ("columnar.shell.tables:alter", "Change families and attributes while the table serves."),
    "truncate": ("columnar.shell.tables:truncate", "Remove all rows of a table at once."),
    "delete-rows": ("columnar.shell.tables:delete_rows", "Remove the rows of a range."),
    "drop": ("columnar.shell.tables:drop", "Remove a table and all its rows."),
    "enable": ("columnar.shell.tables:enable", "Open a disabled table again."),
    "disable": ("columnar.shell.tables:disable", "Turn requests for a table away; its rows stay."),
    "regions": ("columnar.shell.regions:regions", "Show a table's regions: rows, size, load."),
    "flush": ("columnar.shell.regions:flush", "Write what is in memory to files."),
    "compact": ("columnar.shell.regions:compact", "Merge files, or with --major write all of them anew."),
    "namespace": ("columnar.shell.namespaces:namespace", "Make, configure, drop and list namespaces."),
    "grant": ("columnar.shell.rights:grant", "Give a user or group rights."),
    "revoke": ("columnar.shell.rights:revoke", "Take rights from a user or group."),
    "permissions": ("columnar.shell.rights:permissions", "Show who may do what."),
    "whoami": ("columnar.shell.rights:whoami", "Say as whom the store knows you."),
    "user": ("columnar.shell.rights:user", "Give users passwords and tokens, list and drop them."),
    "group": ("columnar.shell.rights:group", "Put users into groups."),
    "split": ("columnar.shell.regions:split", "Split a region in two."),
    "merge": ("columnar.shell.regions:merge", "Merge two neighbouring regions."),
    "status": ("columnar.shell.tables:status", "Say how the server is."),
    "version": ("columnar.shell.version:version", "Say which program this is: version, build, formats."),
    "servers": ("columnar.shell.servers:servers", "Show the servers: state, regions, load."),
    "nodes": ("columnar.shell.nodes:nodes", "Show the nodes of a cluster: who leads, servers, load."),
    "where": ("columnar.shell.cluster:where", "Say where a row is, why there, and what it may wait for."),
    "move": ("columnar.shell.cluster:move", "Move a region to another server."),
    "assign": ("columnar.shell.cluster:assign", "Open a region that was unassigned or could not be opened."),
    "unassign": ("columnar.shell.cluster:unassign", "Close a region until it is assigned."),
    "transitions": ("columnar.shell.cluster:transitions", "Show which regions are on their way."),
    "decisions": ("columnar.shell.cluster:decisions", "Show what the master decided, and why."),
    "balance": ("columnar.shell.servers:balance", "Balance the servers' load now."),
    "balancer": ("columnar.shell.servers:balancer", "Switch balancing on or off."),
    "auto-split": ("columnar.shell.servers:auto_split", "Switch splits of large and busy regions on or off."),
    "drain": ("columnar.shell.servers:drain", "Empty a server, and keep it empty."),
    "undrain": ("columnar.shell.servers:undrain", "Let a drained server have regions again."),
    "restart": ("columnar.shell.servers:restart", "Restart servers, while others serve their regions."),
    "stop": ("columnar.shell.servers:stop", "Empty a server and stop it."),
    "fence": ("columnar.shell.servers:fence", "End a server that hangs, at once."),
    "log-level": ("columnar.shell.log_level:log_level", "Show levels of the running store's log, or change them."),
    "maintenance": ("columnar.shell.maintenance:maintenance", "Say who restarts or drains servers now."),
    "trigger": ("columnar.shell.triggers:trigger", "Look at triggers and change them."),
    "flows": ("columnar.shell.triggers:flows", "Show what feeds triggers, views, feeds, queues and topics."),
    "changes": ("columnar.shell.changes:changes", "Follow the changes of a table."),
    "readers": ("columnar.shell.readers:readers", "Look at groups that share the changes of a table."),
    "queue": ("columnar.shell.queues:queue", "Look at queues, push and take messages, see dead ones."),
    "topic": ("columnar.shell.topics:topic", "Make and look at topics, append records and read them."),
    "feed": ("columnar.shell.feeds:feed", "Have the changes of a table written into a topic."),
    "lease": ("columnar.shell.leases:lease", "Show who holds which lease, and release one."),
    "view": ("columnar.shell.views:view", "Declare views of tables and read them."),
    "snapshot": ("columnar.shell.snapshots:snapshot", "Keep a table as it is now, and bring it back."),
    "export": ("columnar.shell.transfer:export", "Write a table into a folder."),
    "import": ("columnar.shell.transfer:import_", "Make a table out of an exported folder."),
    "digest": ("columnar.shell.transfer:digest", "Count a table's cells and reckon their digest."),
    "bulk-load": ("columnar.shell.transfer:bulk_load", "Put many cells into a table, from files."),
    "backup": ("columnar.shell.backup:backup", "Save the whole store, and look after its backups."),
    "restore-backup": ("columnar.shell.backup:restore_backup", "Make a data folder out of a backup."),
    "doctor": ("columnar.shell.doctor:doctor", "Say what is wrong with store and machine, and what to do."),
    "bundle": ("columnar.shell.bundle:bundle", "Make an archive for support, without data and secrets."),
    "check": ("columnar.shell.checking:check", "Read everything and say what is wrong."),
    "repair": ("columnar.shell.checking:repair_", "Mend what can be mended without guessing."),
    "probe-root": ("columnar.shell.probe_root:probe_root", "Try if a folder can hold a cluster's data."),
    "bench": ("columnar.bench.commands:bench", "Measure a store, or the machine alone."),
    "advise": ("columnar.advise.commands:advise", "Propose tables for a schema of SQL and its queries."),
    "config": ("columnar.roles.config_commands:config", "Show the settings, or write a file of them."),
    "completion": ("columnar.shell.completion:completion", "Print the script that completes commands with Tab."),
}


class _Subcommands(click.Group):
    """The group of subcommands, named in ``_SUBCOMMANDS``; a command is imported at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return None
        module, _, attribute = _SUBCOMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _SUBCOMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from columnar.shell.meaning import command_meant

            meant = command_meant(args, _SUBCOMMANDS)
            hint = f" Did you mean 'columnar {meant}'?" if meant else ""
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from ``_SUBCOMMANDS``, because click would import every command for it."""
        from click.shell_completion import CompletionItem

        names = [name for name in _SUBCOMMANDS if name.startswith(incomplete)]
        items = [CompletionItem(name, help=_SUBCOMMANDS[name][1]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, *args: Any, **extra: Any) -> Any:
        open_closed_streams()
        try:
            return super().main(*args, **extra)
        except OSError as error:
            from columnar.runtime.file_errors import end_with_line  # with sockets and TLS, which --help does not need

            end_with_line("columnar", error)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in _SUBCOMMANDS.items()])


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="columnar")
def main() -> None:
    """A wide-column store that speaks HBase's Thrift API, with triggers.

    \b
    Start a store, make a table, write a row and read it:
      columnar standalone --data ./data &
      columnar create pages text meta:versions=3
      columnar put pages HomePage text:body='Hello' meta:author=me
      columnar get pages HomePage
      columnar scan pages --prefix Home
      columnar delete pages HomePage meta:author

    'columnar shell' has all commands at a prompt, and understands the usual words of HBase's shell.

    Commands that talk to a server take --store HOST:PORT, or the environment's COLUMNAR_STORE; where it speaks
    TLS, --tls-ca FILE too (COLUMNAR_TLS_CA). All settings may be in a file columnar.toml: 'columnar config init'
    writes one.
    """


if __name__ == "__main__":
    main()
