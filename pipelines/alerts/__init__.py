"""`grouplake alerts`: rules in TOML over the tables, the stored state of alerts, and their delivery."""
