# SPDX-License-Identifier: MIT
# Adds the files that Debian's policy requires in every package, the copyright file and the
# compressed change log, before cpack creates the package. SOURCE_DATE_EPOCH fixes the date.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../LICENSE license)

foreach(component ${CPACK_COMPONENTS_ALL})
    set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
    string(TOUPPER ${component} upper)
    set(docs ${root}/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    file(WRITE ${docs}/copyright "License of vkrope:\n\n${license}")
    file(WRITE ${docs}/changelog
        "vkrope (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
        "  * Release ${CPACK_PACKAGE_VERSION}.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
    execute_process(COMMAND gzip -9nf ${docs}/changelog COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB_RECURSE files LIST_DIRECTORIES true ${root}/share/doc/*)
    foreach(file ${root}/share ${root}/share/doc ${files})
        if(IS_DIRECTORY ${file})
            file(CHMOD ${file} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
                 GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
        else()
            file(CHMOD ${file} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
        endif()
    endforeach()
endforeach()
