"""The interactive page: scores dragged on an axis, and everything the library computes of them beside it."""
