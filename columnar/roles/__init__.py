"""The roles of a process: one that is alone, a region server, a supervisor with its master; composed only here."""
