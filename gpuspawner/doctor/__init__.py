"""`gpuspawner doctor`, `capacity` and `explain`: what administrators ask at a terminal."""
