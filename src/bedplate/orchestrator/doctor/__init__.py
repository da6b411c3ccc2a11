"""The doctor: what this machine has, what is wrong, what to do."""
