"""Orchestrator: the platform on this machine. Import from `api`."""
