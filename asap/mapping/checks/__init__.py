"""What can be told about a program without compiling it, one subject a file."""
