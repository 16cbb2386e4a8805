"""The results folder beside a study: one immutable file per trial, plans, facts."""
