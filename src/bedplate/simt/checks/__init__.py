"""What can be wrong in a kernel that ends well: bounds, races, barriers, values."""
