"""The crew: one controller, which plans and deals requests, and its workers, which only send them."""
