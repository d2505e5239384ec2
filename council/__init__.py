"""What a person runs and reads: a whole council on one machine, its live view, its record."""
