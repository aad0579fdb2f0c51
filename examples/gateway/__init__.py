"""A gateway with an HTTP server of its own that starts, watches and stops pipelines.

See ``docs/howto/embed.md``.
"""
