"""Batches of hoppers: how long, how high and how fast they hop."""
