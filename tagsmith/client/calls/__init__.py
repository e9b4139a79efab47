"""The calls of the API, one module per resource. Both clients take their methods from here."""
