"""Shared HTTP code: problems, ETags, bodies, uploads, parameters, limits and route policies."""
