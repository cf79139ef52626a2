"""How a program gets to the compiler and back: request, child process, cache, cluster, versions, flags."""
