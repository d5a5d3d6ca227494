//! The whole program against a scripted model at HTTP: nothing inside it is replaced.

mod command_line;
mod crash;
mod faults;
mod headless;
mod program;
mod sessions;
