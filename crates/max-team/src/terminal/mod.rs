//! dev
mod markdown;
mod text;
mod theme;
