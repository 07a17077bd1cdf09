"""Statistics of categories: tables of counts, of one center or of strata, whole or in part."""
