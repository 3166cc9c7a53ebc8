"""The pages: each module has the model of one page, a dict that is also its JSON."""
