"""Rules for pages of the dashboard: WCAG 2.2 AA and what data-dense pages need besides.

A rule is a function of a page in a browser that returns its findings as text; a page that keeps the rule has none. `RULES` has
every rule by name with the views in which it can be broken, `findings` applies those that belong to a view.
"""

from page_rules.catalogue import RULES, VIEWS, Rule, duplicate_titles, findings

__all__ = ["RULES", "VIEWS", "Rule", "duplicate_titles", "findings"]
