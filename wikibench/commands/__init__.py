"""The commands of ``wikibench``, a module each; ``cli`` names them."""
