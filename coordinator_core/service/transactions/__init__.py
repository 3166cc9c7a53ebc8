"""The transaction coordinator as a service, the delivery of its markers, and blocks of producer ids."""
