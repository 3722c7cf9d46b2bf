"""What the search for bad cases is made of: rules like real life, and what is measured of a walk over them."""
