//! Keeps Vulkan drivers from printing errors about `XDG_RUNTIME_DIR`.
//!
//! Mesa's device selection asks the Wayland library for a display. If `XDG_RUNTIME_DIR` is not set, as in containers and
//! in many SSH sessions, that library prints "error: XDG_RUNTIME_DIR is invalid or not set in the environment" for every
//! device. rullama needs no display, so the lines only look like errors of rullama.

/// Sets `XDG_RUNTIME_DIR`, if it is not set, to a path that can never hold a Wayland socket.
///
/// Must be called while the program has one thread.
#[cfg(all(unix, not(target_os = "macos")))]
#[expect(unsafe_code, reason = "changing the environment is safe only while there is one thread")]
pub(crate) fn provide() {
    const NAME: &str = "XDG_RUNTIME_DIR";
    if std::env::var_os(NAME).is_some_and(|value| !value.is_empty()) {
        return;
    }
    // A file has no entries and can't get any, so no other user can offer a socket below this path.
    // SAFETY: `main` calls this first, before it starts the runtime or anything else that could start a thread, so no
    // other thread can read or change the environment meanwhile.
    unsafe { std::env::set_var(NAME, "/dev/null") };
}

/// Other systems have no such variable.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub(crate) fn provide() {}
