//! Searching by syntax: each language, and files that are none.

use serde_json::{Value, json};

use crate::project::Project;

fn found(project: &Project, input: Value) -> Vec<String> {
    let told = project.call("search_code", input).unwrap();
    let lines = told.lines().filter(|line| !line.is_empty() && !line.starts_with('['));
    lines.map(str::to_owned).collect()
}

/// A project in many tongues.
fn tower() -> Project {
    let project = Project::new();
    project.write(
        "a.rs",
        "mod inner {\n    impl Reader {\n        /// Doc.\n        pub fn parse<T>(\n            text: &str,\n        ) -> Option<T>\n        {\n            other::parse(text)\n        }\n    }\n}\nstruct parse;\nconst parse: u8 = 1;\nfn parse_all() { self.parse::<u8>(); parse!(); let parse = 1; }\n",
    );
    project.write(
        "b.go",
        "package b\n\nfunc (r *Reader) parse(s string) error {\n\treturn x.parse(s)\n}\n\ntype parse struct{}\n",
    );
    project.write("c.py", "class A:\n    def parse(self, text: str) -> int:\n        return other.parse(text)\n\nparse = 1\ndef f():\n    parse = 2\n");
    project.write(
        "d.ts",
        "export class A<T> {\n  async parse(text: string): Promise<T> {\n    return new Parser().parse(text);\n  }\n}\nexport const parse = (x: number) => x + 1;\ninterface parse { a: string }\n",
    );
    project.write("e.jsx", "function parse(a) { return <p>{parse(a)}</p>; }\n");
    project.write("F.java", "class F {\n  int parse(String s) throws E {\n    return this.parse(s);\n  }\n}\n");
    project.write("g.c", "static int *parse(const char *s);\nint *parse(const char *s) {\n  return parse(s);\n}\nstruct parse { int a; };\nstruct parse x;\nint other;\n");
    project.write("h.txt", "fn parse() {}\n");
    project
}

#[test]
fn definitions_and_calls_are_found_in_each_language() {
    let project = tower();
    assert_eq!(
        found(&project, json!({ "symbol": "parse", "kind": "function" })),
        [
            "F.java",
            "2-4 function: int parse(String s) throws E  [in class F]",
            "a.rs",
            "4-9 function: pub fn parse<T>( text: &str, ) -> Option<T>  [in impl Reader]",
            "b.go",
            "3-5 function: func (r *Reader) parse(s string) error",
            "c.py",
            "2-3 function: def parse(self, text: str) -> int  [in class A]",
            "d.ts",
            "2-4 function: async parse(text: string): Promise<T>  [in class A<T>]",
            "6 function: parse = (x: number) =>",
            "e.jsx",
            "1 function: function parse(a)",
            "g.c",
            "1 function: static int *parse(const char *s);",
            "2-4 function: int *parse(const char *s)",
        ]
    );
    assert_eq!(
        found(&project, json!({ "symbol": "parse", "kind": "call", "glob": "*.{rs,go,c}" })),
        [
            "a.rs",
            "8 call: other::parse(text)  [in pub fn parse<T>( text: &str, ) -> Option<T>]",
            "14 call: self.parse::<u8>()  [in fn parse_all()]",
            "14 call: parse!()  [in fn parse_all()]",
            "b.go",
            "4 call: x.parse(s)  [in func (r *Reader) parse(s string) error]",
            "g.c",
            "3 call: parse(s)  [in int *parse(const char *s)]",
        ]
    );
    assert_eq!(
        found(&project, json!({ "symbol": "pars*", "kind": "type" })),
        [
            "a.rs",
            "12 type: struct parse;",
            "b.go",
            "7 type: parse struct{}",
            "d.ts",
            "7 type: interface parse",
            "g.c",
            "5 type: struct parse",
        ]
    );
    assert_eq!(
        found(&project, json!({ "symbol": "parse", "kind": "constant" })),
        ["a.rs", "13 constant: const parse: u8 = 1;", "c.py", "5 constant: parse = 1"]
    );
    let named = project.call("search_code", json!({ "symbol": "inner" })).unwrap();
    assert_eq!(named, "a.rs\n1-11 module: mod inner\n\n[1 match in 1 file]");
    assert_eq!(
        found(&project, json!({ "symbol": "parse*", "files_only": true, "kind": "function", "path": "a.rs" })),
        ["a.rs"]
    );
}

#[test]
fn odd_files_are_read_as_far_as_they_make_sense() {
    let project = Project::new();
    project.write("broken.rs", "fn good() {}\nfn ( { ]] \"\nfn later() {}\n");
    project.write("binary.rs", b"fn good() {}\0\xff\xfe fn later() {}");
    project.write("deep.rs", format!("fn deep() {{ {} }}\n", "(".repeat(100_000)));
    project.write("huge.rs", format!("fn huge() {{}}\n{}", " ".repeat(3 << 20)));
    assert!(found(&project, json!({ "symbol": "good" })).contains(&"1 function: fn good()".to_owned()));
    project.call("search_code", json!({ "symbol": "deep" })).unwrap();
    let told = project.call("search_code", json!({ "symbol": "huge" })).unwrap();
    assert!(told.contains("1 file or folder could not be searched"), "{told}");
    for input in [
        json!({}),
        json!({ "pattern": "a", "symbol": "b" }),
        json!({ "symbol": "a b" }),
        json!({ "symbol": "a", "kind": "x" }),
    ] {
        project.refused("search_code", input);
    }
}
