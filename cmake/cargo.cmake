# Builds one Rust crate of native/ as a static library, offline and without crates.
#
# bedplate_add_crate(<folder under native/> <library name>) makes the target
# <library name>_crate and sets <LIBRARY NAME>_ARCHIVE to the file it makes, for
# the C or C++ library that takes it in.
function(bedplate_add_crate folder library)
  set(source "${CMAKE_SOURCE_DIR}/native/${folder}")
  find_program(BEDPLATE_CARGO cargo)
  if(NOT BEDPLATE_CARGO)
    message(FATAL_ERROR "cargo is missing and native/${folder} needs it: apt-get install cargo")
  endif()
  set(target_dir "${CMAKE_BINARY_DIR}/cargo/${library}")
  set(output "${target_dir}/release/lib${library}.a")
  file(GLOB_RECURSE crate_sources CONFIGURE_DEPENDS "${source}/src/*.rs")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${BEDPLATE_CARGO}" build --offline --locked --release --lib --quiet
            --manifest-path "${source}/Cargo.toml" --target-dir "${target_dir}"
    DEPENDS "${source}/Cargo.toml" "${source}/Cargo.lock" ${crate_sources}
            "${CMAKE_SOURCE_DIR}/native/hal/rust/hal.rs"
    COMMENT "cargo --offline: ${library}"
    VERBATIM)
  add_custom_target("${library}_crate" ALL DEPENDS "${output}")
  string(TOUPPER "${library}" upper)
  set("${upper}_ARCHIVE" "${output}" PARENT_SCOPE)
endfunction()
