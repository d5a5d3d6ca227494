//! Logins with a browser: a resource server and an authorization server, each with its own address, as the protocol describes them.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use max_team_core::hash::Hash;
use max_team_core::mcp::{HttpTransport, McpServer};
use max_team_mcp::{LoginState, ServerStatus, SignIn, SignInError, log_out, login_state};
use reqwest::Url;
use serde_json::{Value, json};

use super::fake_http::{FakeServer, Reply, Request, legacy};
use super::{World, text};

/// What the authorization server knows.
#[derive(Debug, Default)]
struct Office {
    /// The challenge that came with the code that was given out.
    challenge: String,
    /// Tokens that are accepted.
    tokens: Vec<String>,
    renewals: usize,
    /// Seconds that a token is said to hold.
    holds: u64,
    refuses_renewal: bool,
    /// The issuer that answers name, if it is not the right one.
    false_issuer: Option<String>,
    false_metadata: bool,
}

type Shared = Arc<Mutex<Office>>;

fn form(text: &str) -> HashMap<String, String> {
    let url = Url::parse(&format!("http://x/?{text}")).unwrap();
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// The letters of a hash in Base64 for addresses.
fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let sixes = bits.as_bytes().chunks(6).map(|six| format!("{:0<6}", String::from_utf8_lossy(six)));
    sixes.map(|six| char::from(letters[usize::from_str_radix(&six, 2).unwrap()])).collect()
}

fn own_url(request: &Request) -> String {
    let host = request.head.split("host: ").nth(1).unwrap().split("\r\n").next().unwrap();
    format!("http://{host}")
}

/// The authorization server.
async fn office(shared: &Shared) -> FakeServer {
    let shared = Arc::clone(shared);
    FakeServer::start(move |request| {
        let (mut office, own) = (shared.lock().unwrap(), own_url(request));
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match path {
            "/.well-known/oauth-authorization-server" => Reply::json(
                200,
                json!({
                    "issuer": if office.false_metadata { "https://evil.example" } else { &own },
                    "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": format!("{own}/token"),
                    "registration_endpoint": format!("{own}/register"), "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": true,
                }),
            ),
            "/register" => {
                let told = request.json();
                Reply::json(201, json!({ "client_id": "c1", "redirect_uris": told["redirect_uris"] }))
            }
            "/authorize" => {
                let asked = form(query);
                assert_eq!((asked["client_id"].as_str(), asked["code_challenge_method"].as_str()), ("c1", "S256"));
                office.challenge.clone_from(&asked["code_challenge"]);
                let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
                let issuer = office.false_issuer.clone().unwrap_or(own);
                back.query_pairs_mut().extend_pairs([("code", "code1"), ("state", &asked["state"]), ("iss", &issuer)]);
                Reply::new(302, &format!("location: {back}\r\n"), "")
            }
            "/token" => token(&mut office, &form(&request.body)),
            _ => Reply::new(404, "", ""),
        }
    })
    .await
}

fn token(office: &mut Office, asked: &HashMap<String, String>) -> Reply {
    assert!(asked["resource"].ends_with("/mcp"), "{asked:?}");
    match asked["grant_type"].as_str() {
        "authorization_code" => {
            assert_eq!(asked["code"], "code1");
            assert_eq!(base64(&Hash::of(asked["code_verifier"].as_bytes()).0), office.challenge);
        }
        "refresh_token" if office.refuses_renewal => return Reply::json(400, json!({ "error": "invalid_grant" })),
        "refresh_token" => {
            assert_eq!(asked["refresh_token"], format!("renew{}", office.renewals));
            office.renewals += 1;
            // From now on only the new token holds, for a long time.
            office.tokens.clear();
            office.holds = 3_600;
        }
        other => panic!("{other}"),
    }
    let token = format!("token{}", office.renewals);
    office.tokens.push(token.clone());
    Reply::json(
        200,
        json!({ "access_token": token, "token_type": "Bearer", "expires_in": office.holds,
                "refresh_token": format!("renew{}", office.renewals) }),
    )
}

/// The server whose tools need a login.
async fn resource(shared: &Shared, office: &str) -> FakeServer {
    let (shared, office) = (Arc::clone(shared), office.to_owned());
    FakeServer::start(move |request| {
        let own = own_url(request);
        if request.path == "/.well-known/oauth-protected-resource/mcp" {
            let told = json!({ "resource": format!("{own}/mcp"), "authorization_servers": [office] });
            return Reply::json(200, told);
        }
        let tokens = shared.lock().unwrap().tokens.clone();
        if !tokens.iter().any(|token| request.head.contains(&format!("authorization: bearer {token}\r\n"))) {
            let place = format!("{own}/.well-known/oauth-protected-resource/mcp");
            return Reply::new(401, &format!("www-authenticate: Bearer resource_metadata=\"{place}\"\r\n"), "");
        }
        legacy(request, |request| request.result(json!({ "content": [{ "type": "text", "text": "in" }] })))
    })
    .await
}

struct Stage {
    shared: Shared,
    office: FakeServer,
    world: World,
}

impl Stage {
    async fn new(office: Office) -> Self {
        let shared = Arc::new(Mutex::new(office));
        let office = self::office(&shared).await;
        let resource = self::resource(&shared, &office.url).await;
        let url = format!("{}/mcp", resource.url);
        let transport = HttpTransport::Http;
        let world = World::new(McpServer { name: "s".into(), url, transport, ..McpServer::default() });
        Self { shared, office, world }
    }

    fn home(&self) -> PathBuf {
        self.world.folder.path().canonicalize().unwrap().join("home")
    }

    fn state(&self) -> LoginState {
        login_state(&self.home(), self.world.server().config())
    }

    async fn begin(&self) -> Result<SignIn, SignInError> {
        SignIn::begin(&self.home(), self.world.server().config(), None).await
    }

    /// Signs in as a user does: opens the address and follows where it leads.
    async fn sign_in(&self) -> Result<(), SignInError> {
        let begun = self.begin().await?;
        let back = open(begun.url()).await;
        let (ended, _) = tokio::join!(begun.finish(std::future::pending()), visit(&back));
        ended
    }

    fn office(&self) -> std::sync::MutexGuard<'_, Office> {
        self.shared.lock().unwrap()
    }
}

fn browser() -> reqwest::Client {
    max_team_tools::http_client(None).unwrap().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Where the authorization server sends the browser.
async fn open(url: &str) -> String {
    let answer = browser().get(url).send().await.unwrap();
    answer.headers()["location"].to_str().unwrap().to_owned()
}

async fn visit(url: &str) -> u16 {
    browser().get(url).send().await.unwrap().status().as_u16()
}

fn files(stage: &Stage) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(stage.home().join("mcp/logins"));
    let files = folder.into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

#[tokio::test]
async fn a_login_is_kept_in_a_private_file_and_renewed_when_it_ends() {
    let stage = Stage::new(Office { holds: 1, ..Office::default() }).await;
    assert!(stage.world.tools().await.is_empty());
    assert!(stage.world.source().notices()[0].contains("max-team mcp login s"));
    assert_eq!(stage.state(), LoginState::Needed);
    stage.sign_in().await.unwrap();
    assert_eq!(stage.state(), LoginState::SignedIn);
    let [file] = files(&stage).try_into().unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A server that was not connected before: the token is about to end and is renewed before it is sent.
    let entry = McpServer { call_ms: Some(20_000), ..stage.world.server().config().clone() };
    stage.world.servers.set(vec![max_team_mcp::ServerEntry { source: "s".into(), server: entry, pin: None }]);
    assert!(text(&stage.world.call("x", json!({})).await.unwrap()).ends_with("in"));
    assert_eq!(stage.office().renewals, 1);
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["credentials"]["token_response"]["access_token"], "token1");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A token that the server no longer accepts is renewed once, and the call is made.
    stage.office().tokens.clear();
    assert!(text(&stage.world.call("x", json!({})).await.unwrap()).ends_with("in"));
    assert_eq!(stage.office().renewals, 2);
    assert!(log_out(&stage.home(), stage.world.server().config()) && files(&stage).is_empty());
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_says_what_to_do() {
    let stage = Stage::new(Office { holds: 3_600, ..Office::default() }).await;
    stage.sign_in().await.unwrap();
    assert!(text(&stage.world.call("x", json!({})).await.unwrap()).ends_with("in"));
    stage.office().tokens.clear();
    stage.office().refuses_renewal = true;
    let error = stage.world.call("x", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("its login has ended: run `max-team mcp login s` again"), "{error}");
    assert!(matches!(stage.world.server().status(), ServerStatus::Withdrawn(_)));
    assert_eq!((stage.state(), files(&stage).len()), (LoginState::Needed, 0));
}

#[tokio::test]
async fn a_page_with_another_state_neither_fakes_nor_ends_a_login() {
    let stage = Stage::new(Office { holds: 3_600, ..Office::default() }).await;
    let begun = stage.begin().await.unwrap();
    let back = open(begun.url()).await;
    let mut forged = Url::parse(&back).unwrap();
    forged.set_query(Some("code=stolen&state=other"));
    let visits = async { (visit(forged.as_str()).await, visit(&back).await) };
    let (ended, seen) = tokio::join!(begun.finish(std::future::pending()), visits);
    assert_eq!((ended, seen), (Ok(()), (400, 200)));
    assert!(stage.office.requests().iter().all(|request| !request.body.contains("stolen")));
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused() {
    let evil = Some("https://evil.example".to_owned());
    let stage = Stage::new(Office { holds: 3_600, false_issuer: evil, ..Office::default() }).await;
    assert_eq!(stage.sign_in().await, Err(SignInError::Issuer));
    assert!(stage.office.requests().iter().all(|request| request.path != "/token") && files(&stage).is_empty());
    let stage = Stage::new(Office { holds: 3_600, false_metadata: true, ..Office::default() }).await;
    assert!(stage.sign_in().await.is_err() && files(&stage).is_empty());
    assert!(stage.office.requests().iter().all(|request| request.path != "/register"));
}

#[tokio::test]
async fn a_user_who_says_no_is_not_signed_in() {
    let stage = Stage::new(Office::default()).await;
    let begun = stage.begin().await.unwrap();
    let mut back = Url::parse(&open(begun.url()).await).unwrap();
    let state = form(back.query().unwrap())["state"].clone();
    back.set_query(Some(&format!("error=access_denied&state={state}")));
    // The same address by hand, from a browser on another machine.
    let ended = begun.finish(std::future::ready(back.to_string())).await;
    assert_eq!(ended, Err(SignInError::Denied("access_denied".into())));
    assert!(files(&stage).is_empty());
}

#[tokio::test]
async fn a_token_goes_to_no_other_address() {
    let stage = Stage::new(Office { holds: 3_600, ..Office::default() }).await;
    stage.sign_in().await.unwrap();
    let [file] = files(&stage).try_into().unwrap();
    let other = FakeServer::start(|request| legacy(request, |request| request.result(json!({})))).await;
    let entry = McpServer { name: "s".into(), url: format!("{}/mcp", other.url), ..McpServer::default() };
    // Even a file that was put in the place of another's.
    let place = file.with_file_name(format!("{}.json", Hash::of(entry.url.as_bytes())));
    std::fs::copy(&file, place).unwrap();
    stage.world.servers.set(vec![max_team_mcp::ServerEntry { source: "s".into(), server: entry, pin: None }]);
    assert_eq!(stage.world.tools().await.len(), 1);
    assert!(other.requests().iter().all(|request| !request.head.contains("authorization")));
}

#[tokio::test]
async fn a_server_without_a_login_says_so() {
    let server = FakeServer::start(|request| legacy(request, |request| request.result(json!({})))).await;
    let home = tempfile::tempdir().unwrap();
    let entry = McpServer { name: "s".into(), url: format!("{}/mcp", server.url), ..McpServer::default() };
    let begun = SignIn::begin(home.path(), &entry, None).await;
    assert_eq!(begun.unwrap_err(), SignInError::NotOffered);
}
