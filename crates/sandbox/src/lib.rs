//! One command inside walls. Empty: no tool runs commands yet.
