"""Templates, derived columns and the feature index: from integer columns to attribute rows."""
