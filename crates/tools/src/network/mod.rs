//! The proxy and the name server: the only connections out of the network of a command or of the browser.
//!
//! `proxy` takes connections, has them admitted and passes them on; `body` keeps a plain request to its one body; `lookup`
//! resolves a host once, so that the address that was checked is the address that is connected to. `command` admits the
//! connections of one command by the policy and has a person asked about hosts that no rule decides; `names` is the name server
//! that commands are told of: it knows no name and notes each; `report` is what the end of a command says about all of them.

mod body;
mod command;
mod lookup;
mod names;
mod proxy;
mod report;

pub(crate) use command::CommandNetwork;
pub use command::{HostAnswer, HostQuestion, HostRules};
pub(crate) use lookup::Lookup;
pub(crate) use proxy::{Admission, AdmitFuture, serve, target};
pub use report::late_answer;
