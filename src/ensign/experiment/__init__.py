"""One experiment: its steps, and what fills them. The only caller of races."""
