"""What can be trained with: trainers and presets."""
