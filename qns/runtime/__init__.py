"""The process of a peer: event loop, commits, HTTP, configuration, health, metrics and logs."""
