//! The fields of queries, for documents that describe an API.

use std::path::PathBuf;

use max_team_core::agent::Settings;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::memory::{BoardScope, Key};
use max_team_core::teammate::Spawn;

use crate::rewind::RewindPoint;

/// A query as a document describes it.
#[derive(Debug, Clone, Copy)]
pub struct QueryForm {
    /// The name of its type; on the wire the name is in snake case.
    pub name: &'static str,
    pub about: &'static str,
    pub fields: &'static [QueryField],
}

#[derive(Debug, Clone, Copy)]
pub struct QueryField {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: FieldKind,
}

/// The values that a field can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    Session,
    Plan,
    Agent,
    Question,
    Message,
    Text,
    /// A whole number from 0 on.
    Count,
    /// Milliseconds since 1970.
    Time,
    Flag,
    FactKey,
    Board,
    RewindPoint,
    Teammate,
    /// Settings and teams of agents.
    Definition,
    Optional(&'static FieldKind),
    List(&'static FieldKind),
}

/// The type of a field.
pub(crate) trait FieldType {
    const KIND: FieldKind;
}

macro_rules! kinds {
    ($($type:ty => $kind:ident,)*) => { $(impl FieldType for $type { const KIND: FieldKind = FieldKind::$kind; })* };
}

kinds! {
    SessionId => Session,
    PlanId => Plan,
    AgentId => Agent,
    QuestionId => Question,
    EnvelopeId => Message,
    String => Text,
    PathBuf => Text,
    usize => Count,
    u64 => Count,
    i64 => Time,
    bool => Flag,
    Key => FactKey,
    BoardScope => Board,
    RewindPoint => RewindPoint,
    Spawn => Teammate,
    Settings => Definition,
    crate::Team => Definition,
}

impl<T: FieldType> FieldType for Option<T> {
    const KIND: FieldKind = FieldKind::Optional(&T::KIND);
}

impl<T: FieldType> FieldType for Vec<T> {
    const KIND: FieldKind = FieldKind::List(&T::KIND);
}
