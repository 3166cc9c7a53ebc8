"""Values as people read them: numbers with units, ages, times, names and statuses. Pure functions."""
