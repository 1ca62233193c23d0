"""Rights: the one that each method needs, and the check of each call.  Sign-in is in ``columnar.security``."""
