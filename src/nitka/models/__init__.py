"""Models behind small ports: chat, summarise, embed. Every adapter passes the same contract tests as its fake."""
