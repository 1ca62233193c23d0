"""Settings of a program: a file, then environment variables, then flags; click resolves them.

option_kinds    (pure) an option of click as a setting: its key, its variable, its type in TOML
settings_file   where the file is, and its tables, checked against the options
configured      the option ``--config``, by which a command takes its tables of the file
changes         (pure) the differences between two readings of a file
template        (pure) a commented file, made of the options' own help
commands        the commands ``config show``, each value with where it comes from, and ``config init``
"""
