"""Exports, backups and bulk loads of tables and stores, all outside the server's process."""
