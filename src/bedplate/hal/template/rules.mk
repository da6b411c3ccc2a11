# Builds the backend @NAME@ and registers it: beside the library lies a manifest with its SHA-256.
CC ?= cc
INCLUDE ?= @INCLUDE@
CFLAGS ?= -O2 -Wall -Wextra -Werror
LIBRARY := bedplate_hal_@NAME@.so
ABI := $(shell sed -n 's/^\#define BP_ABI_M[AI][JN]OR \([0-9]*\)u/\1/p' \
         $(INCLUDE)/bedplate/hal.h | paste -sd.)

@NAME@.json: $(LIBRARY)
	printf '{"schema": "bedplate.hal-manifest/1", "name": "@NAME@", "library": "$(LIBRARY)",\n' >$@
	printf ' "abi": "$(ABI)", "isa": "%s", ' "$$(uname -m)" >>$@
	printf '"sha256": "%s"}\n' "$$(sha256sum $(LIBRARY) | cut -d' ' -f1)" >>$@
	chmod go-w $@

$(LIBRARY): @NAME@.c
	$(CC) -std=gnu11 $(CFLAGS) -fPIC -fvisibility=hidden -I$(INCLUDE) -shared -o $@ $< -pthread
	chmod go-w $@

clean:
	rm -f $(LIBRARY) @NAME@.json
