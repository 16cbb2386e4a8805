"""Root directories as environments, by name, and what system is in one."""
