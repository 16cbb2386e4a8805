"""Where source trees come from: each kind fetches, all are pinned by content and cached."""
