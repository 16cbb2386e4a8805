"""What stands around an experiment: drafts, examinations, shipping, bundles."""
