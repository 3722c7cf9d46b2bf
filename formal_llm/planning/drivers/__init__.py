"""What asks the questions of walks: one planner, many plans at once, searches, results."""
