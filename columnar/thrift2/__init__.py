"""The Thrift 2 service: translates between its structs and the operations, which it shares with Thrift 1."""
