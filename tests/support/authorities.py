"""The certificate authorities of requests, read once: httpx reads them again for each request that has no client."""

import httpx

AUTHORITIES = httpx.create_ssl_context()
