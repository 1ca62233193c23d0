"""What one region server does: apply, read, scan, log changes."""
