"""Shared HTTP code: problems, conditions, bodies, uploads, parameters, limits and route policies."""
