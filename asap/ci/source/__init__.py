"""What a pull request changes: git, revisions, launch scripts, configurations."""
