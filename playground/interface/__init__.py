"""Watching and steering: one loop, several sources of commands, several views."""
