"""From a scheduled HLO program to its time: instructions, collectives, link loads, timeline."""
