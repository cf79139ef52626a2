"""Language models: names, the built-in one, the client, its limits and its usage."""
