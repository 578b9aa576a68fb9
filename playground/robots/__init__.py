"""What a robot is: model file, joints, sensors, feet, home pose, servo, by name."""
