"""Tools around an experiment: drafts, examinations, shipping, bundles."""
