"""What this machine has that must not be lost or used up: files of others, and memory. Nothing but Python."""
