"""Connections of clients on one machine: from the ports of a supervisor to its servers, and between these."""
