"""The benchmark of trips: the cases of TravelPlanner, who plans them, and the tables of the paper."""
