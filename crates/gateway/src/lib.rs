//! Doors to the world. Empty: the terminal is the only face yet, and it lives in the binary.
