"""What is asked and rewarded: command, observation, reward, randomisation."""
