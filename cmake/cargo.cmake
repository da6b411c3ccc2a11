# Builds one Rust crate of native/ as a C library, offline and without crates.
#
# bedplate_add_crate(<folder under native/> <library name>) does nothing while
# the folder has no Cargo.toml, so a tree without Rust needs no cargo.
function(bedplate_add_crate folder library)
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/native/${folder}")
  if(NOT EXISTS "${source}/Cargo.toml")
    return()
  endif()
  find_program(BEDPLATE_CARGO cargo)
  if(NOT BEDPLATE_CARGO)
    message(FATAL_ERROR "cargo is missing and native/${folder} needs it: apt-get install cargo")
  endif()
  set(target_dir "${CMAKE_CURRENT_BINARY_DIR}/cargo/${library}")
  set(output "${target_dir}/release/lib${library}.so")
  file(GLOB_RECURSE crate_sources CONFIGURE_DEPENDS "${source}/src/*.rs")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${BEDPLATE_CARGO}" build --offline --release
            --manifest-path "${source}/Cargo.toml" --target-dir "${target_dir}"
    DEPENDS "${source}/Cargo.toml" ${crate_sources}
    COMMENT "cargo --offline: ${library}"
    VERBATIM)
  add_custom_target("${library}_crate" ALL DEPENDS "${output}")
  install(FILES "${output}" DESTINATION "${BEDPLATE_LIB_DIR}")
endfunction()
