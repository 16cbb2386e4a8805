"""Reports: view models and renderers from results to strings. Pure."""
