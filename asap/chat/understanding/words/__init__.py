"""What words alone tell: the language, doubt, orders, whose figure it is."""
