"""How a program gets to the compiler and back: child processes, a Ray cluster, the cache, versions."""
