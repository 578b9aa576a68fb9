"""How a robot decides without learning; pure functions of (params, memory, sensed)."""
