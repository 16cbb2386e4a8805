"""Sources of trees: each kind fetches, all are pinned by content and cached."""
