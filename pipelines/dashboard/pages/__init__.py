"""The pages: a folder each, with its model (a dict that is also its JSON), queries, charts and templates."""
