"""What a person at a terminal types: the subcommands that talk to a server, and how they show things."""
