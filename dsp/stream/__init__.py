"""The engine: graphs of elastic operators whose instances run on hosts."""
