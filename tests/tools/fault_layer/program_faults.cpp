// SPDX-License-Identifier: MIT
// Faults that every program must handle, regardless of its calls. Tested by tool_bad_driver.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "faults.hpp"

namespace vkrope::faults {
namespace {

// Reports a name that breaks out of a line, of UTF-8 and of the text of a page.
void hostile_name(Functions& replaced) {
    static std::string name;
    // ESC and BEL; DEL; CSI of C1 as UTF-8, then as a byte alone; an overlong ESC; a second line.
    name = argument + " bad \033[31m\007 \x7f \xc2\x9b" + "2J \x9b" + "5m \xc0\x9b" +
           "7m\nname <script>document.title='hostile'</script>&\"'";
    change_properties(replaced, [](const Reported& reported) {
        std::memcpy(reported.properties.deviceName, name.c_str(), name.size() + 1);
        if (reported.driver != nullptr)
            std::memcpy(reported.driver->driverInfo, name.c_str(), name.size() + 1);
    });
}

// ---- Endings ----

// The way a driver ends the current call or the program. The argument is ARGUMENT@PLACE+AFTER.
// ARGUMENT: the code for exit, the signal for raise. PLACE: submit (the default), pipelines,
// instance, destroy (of the device), or load (of the library). AFTER: the number of calls at that
// place that first succeed.
struct Ending {
    VkResult (*end)(const std::string& argument) = nullptr;
    std::string argument, place;
    int after = 0;
};
Ending ending;

void end_by(Functions& replaced, VkResult (*end)(const std::string&)) {
    const std::size_t at = argument.find('@'), plus = argument.find('+');
    ending = {end, argument.substr(0, at), "submit", 0};
    if (at != std::string::npos) ending.place = argument.substr(at + 1, plus - at - 1);
    if (plus != std::string::npos) ending.after = std::stoi(argument.substr(plus + 1));
    replaced.vkQueueSubmit = [](VkQueue queue, std::uint32_t count, const VkSubmitInfo* submits,
                                VkFence fence) {
        const VkResult result = pass("submit");
        return result != VK_SUCCESS ? result : next.vkQueueSubmit(queue, count, submits, fence);
    };
    replaced.vkCreateComputePipelines = [](VkDevice device, VkPipelineCache cache,
                                           std::uint32_t count,
                                           const VkComputePipelineCreateInfo* create,
                                           const VkAllocationCallbacks* allocator,
                                           VkPipeline* made) {
        const VkResult result = pass("pipelines");
        return result != VK_SUCCESS
                   ? result
                   : next.vkCreateComputePipelines(device, cache, count, create, allocator, made);
    };
    replaced.vkDestroyDevice = [](VkDevice device, const VkAllocationCallbacks* allocator) {
        pass("destroy");
        next.vkDestroyDevice(device, allocator);
    };
}

void exits(Functions& replaced) {
    end_by(
        replaced,
        [](const std::string& code) {
            std::exit(std::stoi(code));
            return VK_SUCCESS;
        });
}

void quick_exits(Functions& replaced) {
    end_by(
        replaced,
        [](const std::string& code) {
            std::quick_exit(std::stoi(code));
            return VK_SUCCESS;
        });
}

void raises(Functions& replaced) {
    end_by(
        replaced,
        [](const std::string& name) {
            constexpr std::pair<const char*, int> signals[] = {
                {"HUP", SIGHUP},   {"INT", SIGINT},   {"PIPE", SIGPIPE},
                {"TERM", SIGTERM}, {"XCPU", SIGXCPU}, {"SEGV", SIGSEGV},
                {"BUS", SIGBUS},   {"FPE", SIGFPE},   {"ABRT", SIGABRT}};
            for (const auto& [known, number] : signals)
                if (name == known) ::raise(number);
            return VK_ERROR_UNKNOWN;
        });
}

volatile bool deeper = true;

// Uses up the stack. The array is needed after the call, so the compiler cannot turn the recursion
// into a loop.
[[gnu::noinline]] int overflow() {
    volatile char frame[4096] = {};
    return (deeper ? overflow() : 0) + frame[0];
}

void overflows(Functions& replaced) {
    end_by(
        replaced,
        [](const std::string& thread) {
            if (thread == "thread")
                std::thread([] { overflow(); }).join();
            else
                overflow();
            return VK_SUCCESS;
        });
}

void hangs(Functions& replaced) {
    end_by(
        replaced,
        [](const std::string&) {
            for (;;) ::pause();
            return VK_SUCCESS;
        });
}

void loses(Functions& replaced) {
    end_by(
        replaced, [](const std::string&) { return VK_ERROR_DEVICE_LOST; });
}

void fails(Functions& replaced) {
    end_by(
        replaced, [](const std::string&) { return VK_ERROR_UNKNOWN; });
}

constexpr Fault all[] = {
    {"hostile_name", "has a name that is more than one line of text", hostile_name},
    {"exit", "ends the program with an exit code", exits},
    {"quick_exit", "ends the program without its last words", quick_exits},
    {"raise", "raises a signal", raises},
    {"overflow", "uses up the stack", overflows},
    {"hang", "does not return", hangs},
    {"lose", "loses the device", loses},
    {"fail", "fails for no reason that it says", fails},
};

}  // namespace

VkResult pass(const char* place) {
    static int passed = 0;
    if (ending.end == nullptr || ending.place != place || passed++ < ending.after)
        return VK_SUCCESS;
    return ending.end(ending.argument);
}

std::span<const Fault> program_faults() {
    return all;
}

}  // namespace vkrope::faults
