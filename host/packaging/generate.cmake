# SPDX-License-Identifier: MIT
# Writes OUT: what PROGRAM --generate WHAT prints.
execute_process(COMMAND "${PROGRAM}" --generate ${WHAT} OUTPUT_FILE "${OUT}"
                COMMAND_ERROR_IS_FATAL ANY)
