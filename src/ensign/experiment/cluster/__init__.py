"""A study on many hosts: jobs that build and race, and who deals them out."""
