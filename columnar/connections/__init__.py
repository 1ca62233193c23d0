"""Transfer of client connections on one machine: from a supervisor's ports to its servers, and between servers."""
