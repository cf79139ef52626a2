"""Earlier sessions: their worklogs and what they cost."""
