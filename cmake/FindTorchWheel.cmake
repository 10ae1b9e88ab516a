# libtorch is the pip wheel in the project's .venv (pinned in requirements.txt), or any that Torch_DIR names.
# Gives the target ballast_torch, with c10d's Gloo, and ballast_torch_sources(TARGET) for targets whose files include it.
if(NOT Torch_DIR)
  file(GLOB wheel ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch/share/cmake/Torch)
  if(NOT wheel)
    message(FATAL_ERROR "libtorch not found: run `make setup`, or set Torch_DIR")
  endif()
  set(Torch_DIR ${wheel} CACHE PATH "Folder of TorchConfig.cmake")
endif()
find_package(Torch REQUIRED)

find_path(GLOO_INCLUDE_DIR gloo/config.h REQUIRED DOC "Headers of libgloo-dev; the code is in libtorch")

add_library(ballast_torch INTERFACE)
target_include_directories(ballast_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS} ${GLOO_INCLUDE_DIR})
# The wheel brings headers of a newer fmt than Debian's library, and they come first: used as headers only they agree.
target_compile_definitions(ballast_torch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED FMT_HEADER_ONLY=1)
target_link_libraries(ballast_torch INTERFACE ${TORCH_LIBRARIES})

# A file that includes libtorch costs 10 to 25 s, nearly all of it headers: one precompiled header serves every target.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cpp "")
add_library(ballast_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(ballast_torch_pch PRIVATE ballast_torch Threads::Threads)
target_precompile_headers(ballast_torch_pch PRIVATE <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>)

# libtorch's headers do not survive our strictest warnings.
function(ballast_torch_sources target)
  target_link_libraries(${target} PUBLIC ballast_torch)
  target_compile_options(${target} PRIVATE -Wno-conversion -Wno-sign-conversion -Wno-pedantic)
  target_precompile_headers(${target} REUSE_FROM ballast_torch_pch)
endfunction()
