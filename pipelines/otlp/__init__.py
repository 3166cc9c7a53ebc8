"""Export of metrics and batches to an OpenTelemetry collector. Only this package imports OpenTelemetry."""
