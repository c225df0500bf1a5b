"""What `camgraph model` does: looks into models, and makes others of them."""
