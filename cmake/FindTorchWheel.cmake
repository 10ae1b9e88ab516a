# libtorch is the pip wheel in the project's .venv (pinned in requirements.txt), or any folder with its include/ and lib/
# that TORCH_ROOT names. Gives the target ballast_torch, with c10d's Gloo, and ballast_torch_sources(TARGET) for targets
# whose files include it. Not by the wheel's own TorchConfig.cmake: a CUDA build's wants the CUDA toolkit (docs/decisions/0004).
if(NOT TORCH_ROOT)
  file(GLOB wheel ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(NOT wheel)
    message(FATAL_ERROR "libtorch not found: run `make setup`, or set TORCH_ROOT")
  endif()
  list(GET wheel -1 wheel)
  set(TORCH_ROOT ${wheel} CACHE PATH "Folder with libtorch's include/ and lib/" FORCE)
endif()
find_library(TORCH_CPU_LIBRARY torch_cpu PATHS ${TORCH_ROOT}/lib NO_DEFAULT_PATH REQUIRED)
find_library(TORCH_C10_LIBRARY c10 PATHS ${TORCH_ROOT}/lib NO_DEFAULT_PATH REQUIRED)
find_path(GLOO_INCLUDE_DIR gloo/config.h REQUIRED DOC "Headers of libgloo-dev; the code is in libtorch")

add_library(ballast_torch INTERFACE)
target_include_directories(ballast_torch SYSTEM INTERFACE
  ${TORCH_ROOT}/include ${TORCH_ROOT}/include/torch/csrc/api/include ${GLOO_INCLUDE_DIR})
# The wheel brings headers of a newer fmt than Debian's library, and they come first: used as headers only they agree.
target_compile_definitions(ballast_torch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED FMT_HEADER_ONLY=1)
target_link_libraries(ballast_torch INTERFACE ${TORCH_CPU_LIBRARY} ${TORCH_C10_LIBRARY})

# A file that includes libtorch costs 10 to 25 s, nearly all of it headers: one precompiled header serves every target.
if(NOT EXISTS ${CMAKE_CURRENT_BINARY_DIR}/torch_pch.cpp)  # written once: a new date would recompile all that uses it
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/torch_pch.cpp "")
endif()
add_library(ballast_torch_pch OBJECT ${CMAKE_CURRENT_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(ballast_torch_pch PRIVATE ballast_torch Threads::Threads)
target_precompile_headers(ballast_torch_pch PRIVATE <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>)

# libtorch's headers do not survive our strictest warnings.
function(ballast_torch_sources target)
  target_link_libraries(${target} PUBLIC ballast_torch)
  target_compile_options(${target} PRIVATE -Wno-conversion -Wno-sign-conversion -Wno-pedantic)
  target_precompile_headers(${target} REUSE_FROM ballast_torch_pch)
endfunction()
