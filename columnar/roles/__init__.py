"""The roles of a process (standalone, region server, supervisor with its master), which only this package composes."""
