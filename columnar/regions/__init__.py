"""The region server: applies mutations, reads, scans and logs changes."""
