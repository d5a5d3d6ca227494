//! The languages that are known by their syntax, and what in their trees has a name.
//!
//! A table per language: which node is which kind of thing. Names and signatures are then found the same way in all
//! of them. One grammar stands for JavaScript and TypeScript, with and without JSX: it reads them all.

use std::path::Path;

use tree_sitter::{Language, Node};

/// What kind of thing has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Type,
    Constant,
    Module,
    Call,
}

impl Kind {
    pub(super) const NAMES: [(&str, Kind); 5] = [
        ("function", Kind::Function),
        ("type", Kind::Type),
        ("constant", Kind::Constant),
        ("module", Kind::Module),
        ("call", Kind::Call),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A language: its grammar, and the nodes of its trees that have a name, each with the field the name is in.
pub(super) struct Tongue {
    ends: &'static [&'static str],
    grammar: fn() -> Language,
    nodes: &'static [(&'static str, Kind, &'static str)],
}

/// The language of a file, by how its name ends.
pub(super) fn of(path: &Path) -> Option<&'static Tongue> {
    let end = path.extension()?.to_str()?;
    TONGUES.iter().find(|tongue| tongue.ends.contains(&end))
}

impl Tongue {
    pub(super) fn language(&self) -> Language {
        (self.grammar)()
    }

    /// What a node is, and its name.
    pub(super) fn named<'tree>(&self, node: Node<'tree>) -> Option<(Kind, Node<'tree>)> {
        let (_, kind, field) = self.nodes.iter().find(|(name, ..)| *name == node.kind())?;
        let name = name_in(node.child_by_field_name(field)?)?;
        let is_function = || node.child_by_field_name("value").is_some_and(|value| FUNCTIONS.contains(&value.kind()));
        Some((if *kind == Kind::Constant && is_function() { Kind::Function } else { *kind }, name))
    }

    /// Whether a node is worth naming as what something is part of.
    pub(super) fn is_around(&self, node: Node<'_>) -> bool {
        node.kind() == "impl_item"
            || self.nodes.iter().any(|(name, kind, _)| {
                *name == node.kind() && matches!(kind, Kind::Function | Kind::Type | Kind::Module)
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

static TONGUES: [Tongue; 6] = [
    Tongue {
        ends: &["rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        nodes: &[
            ("function_item", Kind::Function, "name"),
            ("function_signature_item", Kind::Function, "name"),
            ("macro_definition", Kind::Function, "name"),
            ("struct_item", Kind::Type, "name"),
            ("enum_item", Kind::Type, "name"),
            ("union_item", Kind::Type, "name"),
            ("trait_item", Kind::Type, "name"),
            ("type_item", Kind::Type, "name"),
            ("associated_type", Kind::Type, "name"),
            ("const_item", Kind::Constant, "name"),
            ("static_item", Kind::Constant, "name"),
            ("mod_item", Kind::Module, "name"),
            ("call_expression", Kind::Call, "function"),
            ("macro_invocation", Kind::Call, "macro"),
        ],
    },
    Tongue {
        ends: &["go"],
        grammar: || tree_sitter_go::LANGUAGE.into(),
        nodes: &[
            ("function_declaration", Kind::Function, "name"),
            ("method_declaration", Kind::Function, "name"),
            ("method_elem", Kind::Function, "name"),
            ("type_spec", Kind::Type, "name"),
            ("type_alias", Kind::Type, "name"),
            ("const_spec", Kind::Constant, "name"),
            ("var_spec", Kind::Constant, "name"),
            ("call_expression", Kind::Call, "function"),
        ],
    },
    Tongue {
        ends: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        nodes: &[
            ("function_definition", Kind::Function, "name"),
            ("class_definition", Kind::Type, "name"),
            ("assignment", Kind::Constant, "left"),
            ("call", Kind::Call, "function"),
        ],
    },
    Tongue {
        ends: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        nodes: &[
            ("function_declaration", Kind::Function, "name"),
            ("generator_function_declaration", Kind::Function, "name"),
            ("function_signature", Kind::Function, "name"),
            ("method_definition", Kind::Function, "name"),
            ("method_signature", Kind::Function, "name"),
            ("abstract_method_signature", Kind::Function, "name"),
            ("class_declaration", Kind::Type, "name"),
            ("abstract_class_declaration", Kind::Type, "name"),
            ("interface_declaration", Kind::Type, "name"),
            ("type_alias_declaration", Kind::Type, "name"),
            ("enum_declaration", Kind::Type, "name"),
            ("variable_declarator", Kind::Constant, "name"),
            ("public_field_definition", Kind::Constant, "name"),
            ("internal_module", Kind::Module, "name"),
            ("call_expression", Kind::Call, "function"),
            ("new_expression", Kind::Call, "constructor"),
        ],
    },
    Tongue {
        ends: &["java"],
        grammar: || tree_sitter_java::LANGUAGE.into(),
        nodes: &[
            ("method_declaration", Kind::Function, "name"),
            ("constructor_declaration", Kind::Function, "name"),
            ("class_declaration", Kind::Type, "name"),
            ("interface_declaration", Kind::Type, "name"),
            ("enum_declaration", Kind::Type, "name"),
            ("record_declaration", Kind::Type, "name"),
            ("annotation_type_declaration", Kind::Type, "name"),
            ("variable_declarator", Kind::Constant, "name"),
            ("enum_constant", Kind::Constant, "name"),
            ("method_invocation", Kind::Call, "name"),
            ("object_creation_expression", Kind::Call, "type"),
        ],
    },
    Tongue {
        ends: &["c", "h"],
        grammar: || tree_sitter_c::LANGUAGE.into(),
        nodes: &[
            ("function_definition", Kind::Function, "declarator"),
            ("preproc_function_def", Kind::Function, "name"),
            ("struct_specifier", Kind::Type, "name"),
            ("union_specifier", Kind::Type, "name"),
            ("enum_specifier", Kind::Type, "name"),
            ("type_definition", Kind::Type, "declarator"),
            ("preproc_def", Kind::Constant, "name"),
            ("enumerator", Kind::Constant, "name"),
            ("declaration", Kind::Function, "declarator"),
            ("call_expression", Kind::Call, "function"),
        ],
    },
];
