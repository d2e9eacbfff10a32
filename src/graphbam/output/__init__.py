"""What people see: files, pictures, the report."""
