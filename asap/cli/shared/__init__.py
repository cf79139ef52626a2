"""What all commands share: output, completion, options."""
