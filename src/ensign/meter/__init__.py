"""Races: requests to the meter, and what its records say, as trials."""
