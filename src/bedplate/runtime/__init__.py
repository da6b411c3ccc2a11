"""Device memory by pools and streams; replay, planning and pictures of traces."""
