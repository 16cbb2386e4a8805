"""The results folder beside a study: one immutable Parquet file per trial, plans, facts."""
