"""A guard in front of MCP servers: to the client it is one server, which lists and calls only allowed tools."""
