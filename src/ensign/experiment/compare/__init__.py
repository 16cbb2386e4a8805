"""`ensign compare`: commands or servers, raced until the answer is sure enough."""
