"""The subcommands of ``wikka``; each module builds the objects that its commands need."""
