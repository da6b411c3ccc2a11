"""The software GPU: PTX, exactly and fast, on any CPU. Import from `bedplate.simt.api`."""
