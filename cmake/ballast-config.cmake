# find_package(ballast): the core, as ballast::packing, ballast::sharding and so on, one target a folder.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
find_dependency(nlohmann_json)
find_dependency(tomlplusplus)
include(${CMAKE_CURRENT_LIST_DIR}/ballast-targets.cmake)
