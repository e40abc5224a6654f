# Read by ctest: TUTTI_RINGS=asan;tsan runs the tests of those builds with the release build's, in one run with one summary.
foreach(ring $ENV{TUTTI_RINGS})
  subdirs(${CMAKE_CURRENT_LIST_DIR}/../build-${ring})
endforeach()
