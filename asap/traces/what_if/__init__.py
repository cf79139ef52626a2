"""What another run would take: changes of an execution graph, and the step time of the changed graph."""
