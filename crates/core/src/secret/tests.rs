//! What is a secret, and what only looks like one.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn files_that_are_private_keys_are_known_by_their_first_bytes() {
    for (text, want) in [
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", true),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\n", true),
        ("\u{feff}\n-----BEGIN ENCRYPTED PRIVATE KEY-----\n", true),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n", true),
        ("PuTTY-User-Key-File-3: ssh-ed25519\n", true),
        ("AGE-SECRET-KEY-1QQPQ\n", true),
        ("{\n  \"type\": \"service_account\",\n  \"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMIIE\"}", true),
        ("-----BEGIN CERTIFICATE-----\nMIID", false),
        ("-----BEGIN PUBLIC KEY-----\n", false),
        ("{\"private_key\": \"$KEY\"}", false),
        ("A key begins with -----BEGIN RSA PRIVATE KEY-----\n", false),
        ("const KEY: &str = \"-----BEGIN PRIVATE KEY-----\";", false),
        ("", false),
    ] {
        assert_eq!(super::is_key_file(text.as_bytes()), want, "{text}");
    }
}

#[test]
fn secrets_are_redacted() {
    for (text, want) in [
        ("my key is sk-ant-REDACTED, ok?", "my key is [redacted], ok?"),
        ("token ghp_0123456789abcdef0123 and AKIAIOSFODNN7EXAMPLE", "token [redacted] and [redacted]"),
        ("password: hunter2 please", "password: [redacted] please"),
        ("The password is hunter2.", "The password is [redacted]"),
        ("PASSWORD=hunter2;x", "PASSWORD=[redacted];x"),
        ("我的密码是abc123，记住", "我的密码是[redacted]，记住"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "[redacted]"),
        ("he forgot his password again", "he forgot his password again"),
        ("sk-short and likes tea", "sk-short and likes tea"),
        ("我喜欢茶", "我喜欢茶"),
        ("password=ghp_0123456789abcdef!tail", "password=[redacted]"),
        (r#"{\"password\":\"hunter2horse\"}"#, r#"{\"password\":\"[redacted]\"}"#),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer [redacted]"),
        ("clientSecret: s3cr3t, ok", "clientSecret: [redacted], ok"),
        ("\n+ghp_0123456789abcdef0123\n-xoxb-0123456789abcdef", "\n+[redacted]\n-[redacted]"),
        (r"a\nAKIAIOSFODNN7EXAMPLE\n\\tsk-ant-api03-abcdefgh", r"a\n[redacted]\n\\t[redacted]"),
        ("https://x.org/sk-ant-api03-abcdefgh?x", "https://x.org/[redacted]?x"),
        ("URL=postgres://admin:s3cr3tpw99@db/x", "URL=postgres://admin:[redacted]@db/x"),
        ("postgres://admin:%40dm1n-s3cret@db", "postgres://admin:[redacted]@db"),
        (
            "amqp://me:*star$@mq redis://:{x@r redis://u:$ecret@r",
            "amqp://me:[redacted]@mq redis://:[redacted]@r redis://u:[redacted]@r",
        ),
        ("password_PASSWORD=123456", "password_PASSWORD=[redacted]"),
    ] {
        assert_eq!(redact(text), want, "{text}");
    }
    let value = json!({ "a": ["password: x1", 3], "b": null });
    assert_eq!(redact_value(&value), json!({ "a": ["password: [redacted]", 3], "b": null }));
}

#[test]
fn a_file_of_secrets_keeps_its_names() {
    let file = "GITHUB_TOKEN=ghp_0123456789abcdef0123\nAWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\n\
                AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\nSECRET_KEY=django-insecure-1\n\
                export API_TOKEN=\"correct-horse\"\nPORT=8080\nDEBUG=true\n";
    let want = "GITHUB_TOKEN=[redacted]\nAWS_ACCESS_KEY_ID=[redacted]\nAWS_SECRET_ACCESS_KEY=[redacted]\n\
                SECRET_KEY=[redacted]\nexport API_TOKEN=\"[redacted]\"\nPORT=8080\nDEBUG=true\n";
    assert_eq!(redact(file), want);
    assert_eq!(redact(want), want, "what is taken out is not taken out again");
}

#[test]
fn members_are_judged_by_their_names() {
    for (value, want) in [
        (json!({ "password": "hunter2horse" }), json!({ "password": "[redacted]" })),
        (json!({ "user": { "api_key": "x", "id": "7" } }), json!({ "user": { "api_key": "[redacted]", "id": "7" } })),
        (json!({ "Authorization": "Bearer a b" }), json!({ "Authorization": "[redacted]" })),
        (json!({ "accessToken": "a" }), json!({ "accessToken": "[redacted]" })),
        (json!({ "SECRET_KEY_BASE": "a" }), json!({ "SECRET_KEY_BASE": "[redacted]" })),
        (json!({ "password": 12345678 }), json!({ "password": "[redacted]" })),
        (
            json!({ "dbPassword": ["a", 7, { "id": 1 }] }),
            json!({ "dbPassword": ["[redacted]", "[redacted]", { "id": 1 }] }),
        ),
        (json!({ "token": ["abc123def456", "brace"] }), json!({ "token": ["[redacted]", "brace"] })),
        (json!({ "cookie": "theme=dark; session=0123456789abcdef" }), json!({ "cookie": "[redacted]" })),
        (json!({ "API_TOKEN": "correct-horse" }), json!({ "API_TOKEN": "[redacted]" })),
        // JSON in a text is still JSON.
        (
            json!({ "arguments": r#"{"password":"a\"b","n":1}"# }),
            json!({ "arguments": r#"{"password":"[redacted]","n":1}"# }),
        ),
    ] {
        assert_eq!(redact_value(&value), want, "{value}");
    }
    for same in [
        json!({ "tokens": "12", "max_tokens": 4096, "secretary": "Ann", "password": "" }),
        json!({ "properties": { "password": { "type": "string" } }, "required": ["password"] }),
        json!({ "text": r#"{ "a":  1 }"# }),
        json!({ "token": "identifier", "cookie": "chocolate chip", "credential": "driving licence" }),
        json!({ "password": true, "secret": null, "password_attempts": 3, "token": 7 }),
        json!({ "text": "so `{\"token\": \"identifier\"}` is the next" }),
    ] {
        assert_eq!(redact_value(&same), same);
    }
}

#[test]
fn ordinary_text_is_not_redacted() {
    for text in [
        "tokens: 12",
        "TOKENS: 12",
        "max_tokens=4096",
        "token_limit: 5000",
        "password reset works",
        "the secretary is Ann",
        "let token = lexer.next();",
        "the next token is a brace",
        "authorization: denied",
        "a == b and c=d",
        "postgres://admin:$PASSWORD@db and postgres://admin:[redacted]@db",
        "postgres://admin:${PASSWORD}@db and postgres://%s:%s@db and postgres://me:****@db",
        "https://example.org:8080/@me and mail to a:b@c",
        "the desk-of-management-people and masks_test_everything",
    ] {
        assert_eq!(redact(text), text);
    }
}

/// If every place looked to the end of its run, each of these would take longer than a test may.
#[test]
fn a_text_that_begins_again_and_again_is_read_once() {
    const TIMES: usize = 20_000;
    for (word, want) in [
        ("sk-1", "[redacted]".to_owned()),
        ("PASSWORD_", "PASSWORD_".repeat(TIMES)),
        ("password:", "password:[redacted]".to_owned()),
        ("token:", "token:".repeat(TIMES)),
        ("token=a", "token=a".repeat(TIMES)),
        ("://a:b@", "://a:[redacted]@".repeat(TIMES)),
        ("?token=abcd", "?token=[redacted]".repeat(TIMES)),
    ] {
        assert!(redact(&word.repeat(TIMES)) == want, "{word}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read(text in "\\PC{0,100}", key in "[a-zA-Z0-9]{20}") {
        redact(&text);
        let told = format!("{text} sk-{key}");
        prop_assert!(!redact(&told).contains(&key));
    }
}

/// By shape and by name, in the forms that people and programs write.
#[test]
fn secrets_in_all_their_forms() {
    let table = [
        ("key sk-proj-aB3dE5gH7jK9mN1p", "key [redacted]"),
        ("github_pat_11ABCDEFG0123456789_abc", "[redacted]"),
        ("xoxa-2-123456789012-abc", "[redacted]"),
        ("ASIAIOSFODNN7EXAMPLE", "[redacted]"),
        ("npm_aB3dE5gH7jK9mN1pQ3rS", "[redacted]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[redacted]"),
        ("curl -H 'X: Bearer abcDEF123456'", "curl -H 'X: Bearer [redacted]'"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]"),
        ("GET https://x.org/a?token=abcd1234&page=2", "GET https://x.org/a?token=[redacted]&page=2"),
        ("https://x.org/?page=2&api_key=abcd1234", "https://x.org/?page=2&api_key=[redacted]"),
        ("https://x.org/?X-Amz-Signature=0af3&sig=ab%2Fcd", "https://x.org/?X-Amz-Signature=[redacted]&sig=[redacted]"),
        ("https://me:hunter2@x.org/", "https://me:[redacted]@x.org/"),
        ("password = 'correct horse'", "password = '[redacted] horse'"),
        ("let password = \"hunter2\";", "let password = \"[redacted]\";"),
        ("api_key: abcd-efgh", "api_key: [redacted]"),
        ("--password=swordfish", "--password=[redacted]"),
        ("DB_PASSWORD=swordfish", "DB_PASSWORD=[redacted]"),
        ("Cookie: session=0123456789abcdef", "Cookie: [redacted]"),
    ];
    let wrong: Vec<_> =
        table.iter().map(|(text, want)| (redact(text), *want)).filter(|(got, want)| got != want).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ordinary code and prose stay as they are.
#[test]
fn code_stays_code() {
    let table = [
        "token = parse()",
        "export ANTHROPIC_API_KEY=…",
        "let token = lexer.next_token(input)?;",
        "key: usize",
        "password: String,",
        "password: &str",
        "password: Option<SecretString>",
        "pub secret: Vec<u8>",
        "password: string;",
        "password: str = None",
        "password = get_password(user)",
        "password = self.password",
        "secret = config.secret",
        "connect(host, password=password)",
        "login(password=args.password)",
        "api_key=os.environ['API_KEY']",
        "password = None",
        "if password == hash {",
        "private_key = load_key(path)",
        "secret: required",
        "password: null",
        "password: <your password>",
        "token_type: bearer",
        "{\"token_type\":\"bearer\"}",
        "API_KEY_FILE=/run/secrets/key",
        "password_file: conf/secret.txt",
        "class=\"sk-folding-cube\"",
        "npm_config_registry=https://x.org/",
        "Bearer authentication and Basic auth",
        "the bearer of this letter",
        "https://x.org/search?key=1&q=token",
        "match key { Some(key) => key, None => 0 }",
        "fn password(&self) -> &Secret",
        "password: ${PASSWORD}",
        "PASSWORD=xxxxxxxx",
    ];
    let wrong: Vec<_> = table.iter().map(|text| (redact(text), *text)).filter(|(got, text)| got != text).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn values_of_flags_that_are_called_like_secrets_are_redacted() {
    let cases: [(&[&str], &str); 6] = [
        (&["npx", "-y", "server", "--api-key", "abc"], "npx -y server --api-key [redacted]"),
        (&["server", "--token=abc", "--port", "80"], "server --token=[redacted] --port 80"),
        (&["server", "--api-key", "${KEY}"], "server --api-key ${KEY}"),
        (&["server", "--token-file", "a.txt"], "server --token-file a.txt"),
        (&["server", "--password", "--verbose"], "server --password --verbose"),
        (&["server", "--db-password", "x", "y"], "server --db-password [redacted] y"),
    ];
    for (words, want) in cases {
        assert_eq!(redact_arguments(words.iter().copied()).join(" "), want);
    }
}
