"""The command line: one file per command. The only place with exit statuses."""
