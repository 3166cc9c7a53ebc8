"""`grouplake doctor --migrate-from FILE`: the configuration that a file of another lag monitor amounts to.

A file is read (`peer_file`), recognized by its keys and translated by the module of its program (`migrate`), and printed as a
configuration of ours with the keys that have no counterpart (`migration_report`). Nothing is requested from a broker.
"""
