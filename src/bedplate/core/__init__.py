"""What every system may use: small, and without knowledge of any system.

Import its modules directly (`from bedplate.core.errors import BedplateError`);
`core` has no `api` module because all of it is public.
"""
