"""The subcommands of ``wikka``, one a module; each puts together what it needs."""
