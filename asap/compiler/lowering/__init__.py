"""From a request to a lowered step: the mesh, the reference step, MaxText's own or the user's."""
