"""How a robot moves: one `Physics` interface and the engines behind it."""
