"""Serving: a model file becomes an OpenAI-compatible server. Import from `api`."""
