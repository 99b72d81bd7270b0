"""The server: memory behind any OpenAI client, and the same calls over HTTP. Needs the extra `server`.

`nitka.server.app.create_app` makes the application; `nitka serve` runs it.
"""
