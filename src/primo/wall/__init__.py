"""The wall: private moments go in, a release comes out. Nothing else draws noise."""
