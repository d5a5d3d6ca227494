//! The phrases about models, their providers, and names that are no commands yet.

use super::Lang;

/// The part that needs a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFault {
    /// The key is wrong, or may not use the model.
    Key,
    /// The server is not there, or does not answer.
    Server,
    /// There is no such model.
    Model,
    /// What answers at this address is no model.
    Address,
    /// The provider cannot answer now.
    Busy,
    /// Something else, as the provider says it.
    Request,
}

impl Lang {
    /// A name that is reserved: what to use today, and how to send it as a prompt.
    pub fn reserved(self, name: &str) -> String {
        let instead = self.instead_of(name);
        self.reserved_command(name, instead)
    }

    /// What `doctor` leaves untested.
    pub fn untested(self, online: bool) -> String {
        let others = self.other_untested_parts();
        if online {
            return others.to_owned();
        }
        self.not_tested_online(others)
    }

    /// The model has answered the request of `doctor --online`.
    pub fn online_answered(self, model: &str, ms: u128, cost: Option<&str>) -> String {
        let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        self.answered_in_ms(model, ms, &cost)
    }

    /// The request of `doctor --online` failed.
    pub fn online_failed(self, trouble: ModelFault, model: &str, key: &str, detail: &str) -> String {
        match trouble {
            ModelFault::Key => self.key_refused(key, detail),
            ModelFault::Server => self.server_silent(detail),
            ModelFault::Model => self.model_refused(model, detail),
            ModelFault::Address => self.no_model_at_address(detail),
            ModelFault::Busy => self.provider_failed(detail),
            ModelFault::Request => self.request_refused(detail),
        }
    }

    /// The command that does the job of a reserved name today.
    fn instead_of(self, name: &str) -> &'static str {
        match name {
            "acp" => self.instead_of_acp(),
            "cron" => self.instead_of_cron(),
            _ => self.instead_of_others(),
        }
    }
}
