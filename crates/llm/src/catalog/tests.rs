//! Rows of the catalogue: the built-in ones, and what users write over them.

use serde_json::json;

use super::*;

fn resolved(name: &str, provider: Option<&str>) -> Result<(String, String), String> {
    let model = Catalog::builtin().resolve(name, provider);
    model.map(|model| (model.provider, model.name)).map_err(|error| error.to_string())
}

#[test]
fn the_embedded_file_is_sound() {
    let catalog = Catalog::parse().unwrap();
    let mut names: Vec<&String> =
        catalog.models.iter().flat_map(|row| std::iter::once(&row.name).chain(&row.aliases)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name or an alias means two models");
    for row in &catalog.models {
        assert!(row.price.is_some() && u64::from(row.max_tokens) * 2 < row.context_tokens, "{row:?}");
    }
    for provider in &catalog.providers {
        crate::Endpoint::new(provider, None, None).unwrap();
    }
    let wanted = [
        "anthropic",
        "openai",
        "deepseek",
        "ollama",
        "lmstudio",
        "vllm",
        "llamacpp",
        "qwen",
        "glm",
        "moonshot",
        "openrouter",
        "groq",
        "xai",
        "mistral",
    ];
    for name in wanted {
        catalog.provider(name).unwrap();
    }
}

#[test]
fn names_resolve() {
    let table = [
        ("claude-sonnet-4-6", None, "anthropic", "claude-sonnet-4-6"),
        ("anthropic/claude-opus-4-7", None, "anthropic", "claude-opus-4-7"),
        ("sonnet", None, "anthropic", "claude-sonnet-5-5"),
        ("anthropic/haiku", None, "anthropic", "claude-haiku-5-5"),
        ("anthropic/claude-next", None, "anthropic", "claude-next"),
        ("llama3.2", Some("ollama"), "ollama", "llama3.2"),
        ("ollama/llama3.2", None, "ollama", "llama3.2"),
        ("ollama/hf.co/some/model", Some("anthropic"), "ollama", "hf.co/some/model"),
        ("claude-sonnet-4-6", Some("openai"), "openai", "claude-sonnet-4-6"),
        ("anthropic/claude-sonnet-4.6", Some("openrouter"), "openrouter", "anthropic/claude-sonnet-4.6"),
        ("openrouter/anthropic/claude-sonnet-4.6", Some("openrouter"), "openrouter", "anthropic/claude-sonnet-4.6"),
        ("openrouter/anthropic/claude-sonnet-4.6", None, "openrouter", "anthropic/claude-sonnet-4.6"),
        ("openai/gpt-oss-120b", Some("groq"), "groq", "openai/gpt-oss-120b"),
        ("vllm/Qwen/Qwen3-32B", None, "vllm", "Qwen/Qwen3-32B"),
        ("Qwen/Qwen3-32B", Some("vllm"), "vllm", "Qwen/Qwen3-32B"),
    ];
    for (name, provider, owner, want) in table {
        assert_eq!(resolved(name, provider), Ok((owner.into(), want.into())), "{name} at {provider:?}");
    }
}

#[test]
fn an_unknown_name_comes_with_a_suggestion() {
    let listed = "For a model that is not listed write `provider/name`";
    let table = [
        (
            "claude-sonet-4-6",
            None,
            format!("unknown model `claude-sonet-4-6`; did you mean `claude-sonnet-4-6`? {listed}"),
        ),
        ("zzz", None, "unknown model `zzz`; for a model that is not listed write `provider/name`".into()),
        ("antropic/x", None, "unknown provider `antropic`; did you mean `anthropic`?".into()),
        ("Qwen/Qwen3-32B", None, "unknown provider `Qwen`; did you mean `qwen`?".into()),
        ("x", Some("olama"), "unknown provider `olama`; did you mean `ollama`?".into()),
        ("anthropic/", None, "unknown model ``; for a model that is not listed write `provider/name`".into()),
    ];
    for (name, provider, want) in table {
        assert_eq!(resolved(name, provider), Err(want), "{name}");
    }
}

#[test]
fn models_carry_their_limits_and_prices() {
    let catalog = Catalog::builtin();
    let sonnet = catalog.resolve("claude-sonnet-4-6", None).unwrap();
    let price = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };
    let want = Model {
        provider: "anthropic".into(),
        name: "claude-sonnet-4-6".into(),
        context_tokens: 200_000,
        max_tokens: 32_000,
        thinking_tokens: 8_000,
        price: Some(price),
    };
    assert_eq!(sonnet, want);
    let unlisted = |name| {
        let model = catalog.resolve(name, None).unwrap();
        (model.context_tokens, model.max_tokens, model.thinking_tokens, model.price)
    };
    assert_eq!(unlisted("openai/gpt-9"), (128_000, 8_192, 0, None));
    assert_eq!(unlisted("ollama/llama3.2"), (32_000, 8_192, 0, Some(Price::FREE)));
}

#[test]
fn the_users_rows_add_and_override() {
    let rows = json!({
        "providers": {
            "anthropic": {"base_url": "https://gateway.example/claude", "requests_per_minute": 50},
            "house": {"dialect": "openai_chat", "base_url": "http://10.0.0.5:8000", "local": true, "key_header": "x-key"},
        },
        "models": [
            {"provider": "anthropic", "name": "claude-sonnet-4-6", "price": {"input": 1}},
            {"provider": "house", "name": "big", "aliases": ["b"], "context_tokens": 64000},
            {"provider": "house", "name": "dear", "price": [1, 2.5]},
        ],
    });
    let catalog = Catalog::builtin().with(&rows).unwrap();
    let anthropic = catalog.provider("anthropic").unwrap();
    assert_eq!(anthropic.base_url, "https://gateway.example/claude");
    assert_eq!(anthropic.requests_per_minute.map(NonZeroU32::get), Some(50));
    assert_eq!(anthropic.key, KeyStyle::Header("x-api-key".into()));
    let price = catalog.resolve("claude-sonnet-4-6", None).unwrap().price.unwrap();
    assert_eq!(price, Price { input: 1_000, output: 15_000, cache_read: 300, cache_write: 3_750 });
    let big = catalog.resolve("b", None).unwrap();
    assert_eq!((big.provider.as_str(), big.context_tokens, big.max_tokens), ("house", 64_000, 16_000));
    assert_eq!(big.price, Some(Price::FREE));
    let dear = catalog.resolve("house/dear", None).unwrap().price;
    assert_eq!(dear, Some(Price { input: 1_000, output: 2_500, cache_read: 1_000, cache_write: 1_000 }));
}

#[test]
fn wrong_rows_are_named_with_their_field() {
    let model = |fields: Value| json!({"models": [fields]});
    let provider = |fields: Value| json!({"providers": {"mine": fields}});
    let table = [
        (json!([]), "the catalogue: `(the whole row)` must be a map, not a list"),
        (json!({"model": []}), "the catalogue: `model` is not a field; did you mean `models`?"),
        (json!({"models": {}}), "the catalogue: `models` must be a list of rows"),
        (model(json!({"provider": "openai"})), "model 1: `name` is missing"),
        (
            model(json!({"name": "m", "provider": "opneai"})),
            "model `m`: `provider` names `opneai`, which has no row; did you mean `openai`?",
        ),
        (
            model(json!({"name": "m", "provider": "openai", "context": 1})),
            "model `m`: `context` is not a field; did you mean `context_tokens`?",
        ),
        (
            model(json!({"name": "m", "provider": "openai", "context_tokens": "lots"})),
            "model `m`: `context_tokens` must be a whole number, not \"lots\"",
        ),
        (
            model(json!({"name": "m", "provider": "openai", "max_tokens": -1})),
            "model `m`: `max_tokens` must be a whole number, not -1",
        ),
        (
            model(json!({"name": "m", "provider": "openai", "price": {"input": 1}})),
            "model `m`: price: `output` is missing",
        ),
        (
            model(json!({"name": "m", "provider": "openai", "price": {"input": "1", "output": 2}})),
            "model `m`: price: `input` must be dollars per million tokens, not \"1\"",
        ),
        (provider(json!({"base_url": "http://x"})), "provider `mine`: `dialect` is missing"),
        (provider(json!({"dialect": "openai_chat"})), "provider `mine`: `base_url` is missing"),
        (
            provider(json!({"dialect": "openai_chat", "base_url": "http://x", "requests_per_minute": 0})),
            "provider `mine`: `requests_per_minute` must be a whole number, not 0",
        ),
        (
            provider(json!({"dialect": "openai_chat", "base_url": "http://x", "headers": {"a": 1}})),
            "provider `mine`: `headers` must be a map of texts, not a map",
        ),
        (
            provider(json!({"dialect": "openai", "base_url": "http://x"})),
            "provider `mine`: `dialect` cannot be \"openai\": unknown variant `openai`, expected `anthropic` or `openai_chat`",
        ),
    ];
    for (rows, want) in table {
        let error = Catalog::builtin().with(&rows).unwrap_err().to_string();
        assert_eq!(error, format!("catalogue: {want}"));
    }
}
