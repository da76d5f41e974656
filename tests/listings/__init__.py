"""Listings and searches: patterns, cursors, walks, and the routes."""
