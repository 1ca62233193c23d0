"""The commands of a person at a terminal: the subcommands that talk to a server, and the form of their answers."""
