"""The inspector: pages at `/inspector` that show what is kept of a person, and a conversation as the model saw it."""

from nitka.server.inspector.pages import router

__all__ = ["router"]
