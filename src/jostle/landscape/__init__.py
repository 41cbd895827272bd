"""How flat a minimum is: what the outputs do when the weights are moved."""
