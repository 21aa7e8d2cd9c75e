/* SPDX-License-Identifier: MIT */
/**
 * @file version.h
 * @brief The version of these headers, in C and C++. CMakeLists.txt reads the version from here.
 */
#ifndef VKROPE_VERSION_H
#define VKROPE_VERSION_H

#define VKROPE_VERSION_MAJOR 0 /**< of these headers */
#define VKROPE_VERSION_MINOR 1 /**< of these headers */
#define VKROPE_VERSION_PATCH 0 /**< of these headers */
/** A version as one number, which an `\#if` can compare; a later version has a larger number. */
#define VKROPE_MAKE_VERSION(major, minor, patch) ((major)*0x400000u + (minor)*0x1000u + (patch))
/** The version of these headers. Before 1.0 a new minor version may break the interface. */
#define VKROPE_VERSION \
    VKROPE_MAKE_VERSION(VKROPE_VERSION_MAJOR, VKROPE_VERSION_MINOR, VKROPE_VERSION_PATCH)

#endif
