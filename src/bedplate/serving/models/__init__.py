"""Models: one file a family, all behind `base.Model`."""
