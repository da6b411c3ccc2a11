# Writes the manifest of a backend that was just installed into FOLDER: NAME and ISA are given.
file(SHA256 "${FOLDER}/bedplate_hal_${NAME}.so" digest)
file(WRITE "${FOLDER}/${NAME}.json" "{
  \"schema\": \"bedplate.hal-manifest/1\",
  \"name\": \"${NAME}\",
  \"library\": \"bedplate_hal_${NAME}.so\",
  \"abi\": \"0.1\",
  \"isa\": \"${ISA}\",
  \"sha256\": \"${digest}\"
}
")
