"""Objects embedded as small clouds of points, compared by transport (Frogner et al. 2019)."""
