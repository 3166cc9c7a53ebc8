"""Records as text, in the form of Kafka's own formatters and its dump tool."""

from coordinator_core.codec.text.classic_lines import classic_line
from coordinator_core.codec.text.json_forms import DELETE, DumpForm, dump_form, json_form, transaction_json_form

__all__ = ["DELETE", "DumpForm", "classic_line", "dump_form", "json_form", "transaction_json_form"]
