"""The process that runs the store: compiled modules, child processes, logs, faults and futures of its loop."""
