"""The benchmark of trips: the cases of TravelPlanner, the runs of planners, and the tables of the paper."""
