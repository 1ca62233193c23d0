"""Tables and whole stores into folders and back: exports, backups, bulk loads; all outside the server's process."""
