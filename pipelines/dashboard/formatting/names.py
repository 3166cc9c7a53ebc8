"""Names that clients chose: hostile text until shown. Jinja escapes markup; `visible` shows characters that are invisible."""

from coordinator_core.health.visible_names import visible

__all__ = ["visible"]
