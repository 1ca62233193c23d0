"""The Thrift 2 service: translates between its structs and the operations, which Thrift 1 uses, too."""
