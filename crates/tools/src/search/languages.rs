//! The languages that are known by their syntax, and what in their trees has a name.
//!
//! A table per language: which node is which kind of thing. Names and signatures are then found the same way in all
//! of them. One grammar stands for JavaScript and TypeScript, with and without JSX: it reads them all.

use std::path::Path;

use tree_sitter::{Language, Node};

/// What kind of thing has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolKind {
    Function,
    Type,
    Constant,
    Module,
    Call,
}

impl SymbolKind {
    pub(super) const NAMES: [(&str, SymbolKind); 5] = [
        ("function", SymbolKind::Function),
        ("type", SymbolKind::Type),
        ("constant", SymbolKind::Constant),
        ("module", SymbolKind::Module),
        ("call", SymbolKind::Call),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A language: its grammar, and the nodes of its trees that have a name, each with the field the name is in.
pub(super) struct SourceLanguage {
    ends: &'static [&'static str],
    grammar: fn() -> Language,
    nodes: &'static [(&'static str, SymbolKind, &'static str)],
}

/// The language of a file, by how its name ends.
pub(super) fn of(path: &Path) -> Option<&'static SourceLanguage> {
    let end = path.extension()?.to_str()?;
    TONGUES.iter().find(|tongue| tongue.ends.contains(&end))
}

impl SourceLanguage {
    pub(super) fn language(&self) -> Language {
        (self.grammar)()
    }

    /// What a node is, and its name.
    pub(super) fn named<'tree>(&self, node: Node<'tree>) -> Option<(SymbolKind, Node<'tree>)> {
        let (_, kind, field) = self.nodes.iter().find(|(name, ..)| *name == node.kind())?;
        let name = name_in(node.child_by_field_name(field)?)?;
        let is_function = || node.child_by_field_name("value").is_some_and(|value| FUNCTIONS.contains(&value.kind()));
        Some((if *kind == SymbolKind::Constant && is_function() { SymbolKind::Function } else { *kind }, name))
    }

    /// Whether a node is worth naming as what something is part of.
    pub(super) fn is_around(&self, node: Node<'_>) -> bool {
        node.kind() == "impl_item"
            || self.nodes.iter().any(|(name, kind, _)| {
                *name == node.kind() && matches!(kind, SymbolKind::Function | SymbolKind::Type | SymbolKind::Module)
            })
    }
}

/// The part of an expression or a declarator that is the name: `c` of `a.b::c`, `f` of `*f(int)`.
fn name_in(mut node: Node<'_>) -> Option<Node<'_>> {
    const FIELDS: [&str; 8] = ["name", "field", "attribute", "property", "declarator", "function", "type", "macro"];
    /// Declarators within declarators.
    const DEPTH_MAX: usize = 16;
    for _ in 0..DEPTH_MAX {
        if node.named_child_count() == 0 {
            return Some(node);
        }
        node = FIELDS.iter().find_map(|field| node.child_by_field_name(field))?;
    }
    None
}

/// Values that make a constant a function.
const FUNCTIONS: [&str; 3] = ["arrow_function", "function_expression", "generator_function"];

static TONGUES: [SourceLanguage; 6] = [
    SourceLanguage {
        ends: &["rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        nodes: &[
            ("function_item", SymbolKind::Function, "name"),
            ("function_signature_item", SymbolKind::Function, "name"),
            ("macro_definition", SymbolKind::Function, "name"),
            ("struct_item", SymbolKind::Type, "name"),
            ("enum_item", SymbolKind::Type, "name"),
            ("union_item", SymbolKind::Type, "name"),
            ("trait_item", SymbolKind::Type, "name"),
            ("type_item", SymbolKind::Type, "name"),
            ("associated_type", SymbolKind::Type, "name"),
            ("const_item", SymbolKind::Constant, "name"),
            ("static_item", SymbolKind::Constant, "name"),
            ("mod_item", SymbolKind::Module, "name"),
            ("call_expression", SymbolKind::Call, "function"),
            ("macro_invocation", SymbolKind::Call, "macro"),
        ],
    },
    SourceLanguage {
        ends: &["go"],
        grammar: || tree_sitter_go::LANGUAGE.into(),
        nodes: &[
            ("function_declaration", SymbolKind::Function, "name"),
            ("method_declaration", SymbolKind::Function, "name"),
            ("method_elem", SymbolKind::Function, "name"),
            ("type_spec", SymbolKind::Type, "name"),
            ("type_alias", SymbolKind::Type, "name"),
            ("const_spec", SymbolKind::Constant, "name"),
            ("var_spec", SymbolKind::Constant, "name"),
            ("call_expression", SymbolKind::Call, "function"),
        ],
    },
    SourceLanguage {
        ends: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        nodes: &[
            ("function_definition", SymbolKind::Function, "name"),
            ("class_definition", SymbolKind::Type, "name"),
            ("assignment", SymbolKind::Constant, "left"),
            ("call", SymbolKind::Call, "function"),
        ],
    },
    SourceLanguage {
        ends: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        nodes: &[
            ("function_declaration", SymbolKind::Function, "name"),
            ("generator_function_declaration", SymbolKind::Function, "name"),
            ("function_signature", SymbolKind::Function, "name"),
            ("method_definition", SymbolKind::Function, "name"),
            ("method_signature", SymbolKind::Function, "name"),
            ("abstract_method_signature", SymbolKind::Function, "name"),
            ("class_declaration", SymbolKind::Type, "name"),
            ("abstract_class_declaration", SymbolKind::Type, "name"),
            ("interface_declaration", SymbolKind::Type, "name"),
            ("type_alias_declaration", SymbolKind::Type, "name"),
            ("enum_declaration", SymbolKind::Type, "name"),
            ("variable_declarator", SymbolKind::Constant, "name"),
            ("public_field_definition", SymbolKind::Constant, "name"),
            ("internal_module", SymbolKind::Module, "name"),
            ("call_expression", SymbolKind::Call, "function"),
            ("new_expression", SymbolKind::Call, "constructor"),
        ],
    },
    SourceLanguage {
        ends: &["java"],
        grammar: || tree_sitter_java::LANGUAGE.into(),
        nodes: &[
            ("method_declaration", SymbolKind::Function, "name"),
            ("constructor_declaration", SymbolKind::Function, "name"),
            ("class_declaration", SymbolKind::Type, "name"),
            ("interface_declaration", SymbolKind::Type, "name"),
            ("enum_declaration", SymbolKind::Type, "name"),
            ("record_declaration", SymbolKind::Type, "name"),
            ("annotation_type_declaration", SymbolKind::Type, "name"),
            ("variable_declarator", SymbolKind::Constant, "name"),
            ("enum_constant", SymbolKind::Constant, "name"),
            ("method_invocation", SymbolKind::Call, "name"),
            ("object_creation_expression", SymbolKind::Call, "type"),
        ],
    },
    SourceLanguage {
        ends: &["c", "h"],
        grammar: || tree_sitter_c::LANGUAGE.into(),
        nodes: &[
            ("function_definition", SymbolKind::Function, "declarator"),
            ("preproc_function_def", SymbolKind::Function, "name"),
            ("struct_specifier", SymbolKind::Type, "name"),
            ("union_specifier", SymbolKind::Type, "name"),
            ("enum_specifier", SymbolKind::Type, "name"),
            ("type_definition", SymbolKind::Type, "declarator"),
            ("preproc_def", SymbolKind::Constant, "name"),
            ("enumerator", SymbolKind::Constant, "name"),
            ("declaration", SymbolKind::Function, "declarator"),
            ("call_expression", SymbolKind::Call, "function"),
        ],
    },
];
