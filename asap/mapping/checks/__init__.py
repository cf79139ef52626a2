"""What can be checked in a program without compiling it, one subject a file."""
