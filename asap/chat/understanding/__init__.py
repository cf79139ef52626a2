"""From a message to what it asks for and what it states."""
