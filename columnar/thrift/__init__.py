"""The services of the Thrift ports, and their interface definitions."""
