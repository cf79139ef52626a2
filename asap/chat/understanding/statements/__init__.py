"""What a line reports, rules out, corrects and takes back."""
