"""The engineering standards as gates, each with the incident it prevents."""
