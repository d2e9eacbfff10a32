"""What this machine has: files of others and memory, not to be lost or used up; a second core. Nothing but Python."""
