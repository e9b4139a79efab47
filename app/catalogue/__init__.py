"""The catalogue of trainers and presets."""
