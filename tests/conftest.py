"""For all tests: what they start can be interrupted, also where a shell runs them in its background."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
