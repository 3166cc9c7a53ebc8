"""The runtime of both coordinators (`CoordinatorRuntime`): an event loop per log partition, loads, fsyncs, and the observer."""
