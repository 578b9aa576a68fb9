"""How a policy is learned: PPO, checkpoints, resume, logs."""
