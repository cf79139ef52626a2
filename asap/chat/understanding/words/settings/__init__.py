"""Words that name settings: of launchers and compilers, and degrees written out."""
