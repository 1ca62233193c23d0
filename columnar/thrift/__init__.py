"""The services behind the Thrift port; the interface definitions they answer stand beside them."""
