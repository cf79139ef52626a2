"""One chart a file: each turns figures into a specification, a text alternative and a table."""
