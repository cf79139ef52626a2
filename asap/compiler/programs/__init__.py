"""A program to compile: what is asked, with which options and flags, and what the compiler answered."""
