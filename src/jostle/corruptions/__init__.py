"""Common corruptions of images: noise, blur, weather and digital, five severities, seeded by image."""
