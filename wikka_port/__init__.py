"""The wiki: pages in a wide-column store, its indexes kept by triggers."""
