# Writes the manifest of a backend that was just installed into FOLDER: NAME, ABI and ISA are given.
file(SHA256 "${FOLDER}/bedplate_hal_${NAME}.so" digest)
file(WRITE "${FOLDER}/${NAME}.json" "{
  \"schema\": \"bedplate.hal-manifest/1\",
  \"name\": \"${NAME}\",
  \"library\": \"bedplate_hal_${NAME}.so\",
  \"abi\": \"${ABI}\",
  \"isa\": \"${ISA}\",
  \"sha256\": \"${digest}\"
}
")
