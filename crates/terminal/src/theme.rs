//! What things look like.
//!
//! Only the sixteen colours of the user's own palette are used, so that dark and light terminals both stay
//! readable. Without colour everything is still told apart by bold, dim and the signs in the text itself.

use ratatui::style::{Color, Modifier, Style};

/// The looks, with or without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Theme {
    pub(super) color: bool,
}

impl Theme {
    fn paint(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// What can be overlooked.
    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What the user said, and where they write.
    pub(super) fn user(self) -> Style {
        self.paint(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// A name that matters here.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn heading(self, level: u8) -> Style {
        let style = self.paint(Color::Magenta).add_modifier(Modifier::BOLD);
        if level == 1 { style.add_modifier(Modifier::UNDERLINED) } else { style }
    }

    pub(super) fn code(self) -> Style {
        self.paint(Color::Cyan)
    }

    pub(super) fn link(self) -> Style {
        self.paint(Color::Blue).add_modifier(Modifier::UNDERLINED)
    }

    pub(super) fn good(self) -> Style {
        self.paint(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.paint(Color::Red)
    }

    pub(super) fn warning(self) -> Style {
        self.paint(Color::Yellow)
    }

    /// A teammate, in its colour.
    pub(super) fn teammate(self, color: &str) -> Style {
        let color = match color {
            "blue" => Color::Blue,
            "green" => Color::Green,
            "yellow" => Color::Yellow,
            "purple" => Color::Magenta,
            "orange" => Color::LightRed,
            "pink" => Color::LightMagenta,
            "cyan" => Color::Cyan,
            "red" => Color::Red,
            _ => return self.strong(),
        };
        self.paint(color).add_modifier(Modifier::BOLD)
    }

    /// The option that Enter takes.
    pub(super) fn chosen(self) -> Style {
        self.paint(Color::Cyan).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }
}
