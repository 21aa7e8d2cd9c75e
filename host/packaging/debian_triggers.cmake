# SPDX-License-Identifier: MIT
# Removes the scripts that cpack adds to call ldconfig. Debian's policy requires a trigger instead,
# which the package has.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
foreach(package ${CPACK_PACKAGE_FILES})
    set(tree ${CPACK_TEMPORARY_DIRECTORY}/rebuilt)
    file(REMOVE_RECURSE ${tree})
    execute_process(COMMAND dpkg-deb --raw-extract ${package} ${tree} COMMAND_ERROR_IS_FATAL ANY)
    if(EXISTS ${tree}/DEBIAN/postinst)
        file(REMOVE ${tree}/DEBIAN/postinst ${tree}/DEBIAN/postrm)
        execute_process(COMMAND dpkg-deb --root-owner-group --build ${tree} ${package}
                        OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    endif()
endforeach()
