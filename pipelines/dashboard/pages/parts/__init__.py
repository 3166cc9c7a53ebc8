"""Parts that several pages have: the frame with links and times, lists, defects of groups."""
