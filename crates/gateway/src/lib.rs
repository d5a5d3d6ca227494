//! Connections to the outside world. Empty: `tests/frontend.rs` shows what one needs.
