"""What the administrator offers: accelerators, images and sizes."""
