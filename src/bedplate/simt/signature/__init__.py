"""The instruction table: `base` says what a form is, `table` holds them all."""
