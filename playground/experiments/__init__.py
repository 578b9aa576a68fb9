"""What is asked of finished policies and controllers: evaluate, sweep, optimise."""
