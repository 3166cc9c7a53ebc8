"""Reports for people: `grouplake lag`, members and states of groups, incidents in words."""
