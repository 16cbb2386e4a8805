"""Kinds of workloads: what each needs, which processes it becomes, how its operations count."""
