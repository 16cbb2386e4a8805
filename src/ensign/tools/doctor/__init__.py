"""`ensign doctor`: looking (`probe`, `noise`) apart from judging (`judge`, pure)."""
