"""From loop programs to Triton source."""
