"""What a message is about: topics, their examples, and the nearest of them."""
