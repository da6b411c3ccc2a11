"""The code of each instruction class for the fast machine; `base` says how one is added."""
