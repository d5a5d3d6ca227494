//! Test runners, package managers and linters of scripting languages, with the flags that load code from elsewhere,
//! name another program, or work on another project.

use super::ArgMeaning::{Lends, Reads, Tasks, Text, Wraps};
use super::EffectKind::Runs;
use super::{ProgramRow, row};

pub(super) const ROWS: &[ProgramRow] = &[
    // JavaScript: package managers, test runners, linters.
    row("npm", Runs, Text, NPM),
    row("npm run", Runs, Tasks, NPM),
    row("npm run-script", Runs, Tasks, NPM),
    row("npm test", Runs, Text, NPM),
    row("npm ci", Runs, Text, NPM),
    row("npm install", Runs, Reads, NPM),
    row("npm i", Runs, Reads, NPM),
    row("npm add", Runs, Reads, NPM),
    row("npm link", Runs, Reads, NPM),
    row("npm pack", Runs, Reads, "--pack-destination> --prefix< -C< -w= --workspace="),
    row(
        "npm exec",
        Runs,
        Wraps(0),
        "-c# --call# -p= --package= -y --yes --prefix< -C< -w= --workspace= --script-shell! --node-options#",
    ),
    row(
        "npm x",
        Runs,
        Wraps(0),
        "-c# --call# -p= --package= -y --yes --prefix< -C< -w= --workspace= --script-shell! --node-options#",
    ),
    row("npm config set", Runs, Text, "-g% --global%"),
    row("npm explore", Runs, Text, "--shell!"),
    row(
        "npx",
        Runs,
        Lends,
        "-c# --call# -p= --package= -y --yes --no --prefix< -C< -w= --workspace= --shell! --script-shell! --node-arg# -n# --node-options# --userconfig# --registry@ --cache=",
    ),
    row("pnpm", Runs, Tasks, NPM),
    row("pnpm add", Runs, Reads, NPM),
    row("pnpm run", Runs, Tasks, NPM),
    row("pnpm test", Runs, Text, NPM),
    row("pnpm install", Runs, Text, NPM),
    row("pnpm exec", Runs, Wraps(0), "-c# --shell-mode# -r --recursive -C< --dir< -F= --filter="),
    row("pnpm dlx", Runs, Lends, "-c# --shell-mode# --package="),
    row("yarn", Runs, Tasks, NPM),
    row("yarn add", Runs, Reads, NPM),
    row("yarn run", Runs, Tasks, NPM),
    row("yarn test", Runs, Text, NPM),
    row("yarn install", Runs, Text, NPM),
    row("yarn exec", Runs, Wraps(0), "--cwd<"),
    row("bun run", Runs, Tasks, BUN),
    row("bun test", Runs, Reads, BUN),
    row("bun install", Runs, Text, BUN),
    row("bun add", Runs, Reads, BUN),
    row(
        "tsc",
        Runs,
        Reads,
        "@% -p< --project< -b< --build< --outDir> --outFile> --declarationDir> --tsBuildInfoFile> --generateTrace> --generateCpuProfile> --rootDir< --baseUrl< --typeRoots< --plugins# -t= --target= -m= --module= --lib= --jsx=",
    ),
    row(
        "eslint",
        Runs,
        Reads,
        "-o> --output-file> --cache-location> --cache-file> --resolve-plugins-relative-to# -c* --config* --rulesdir# --plugin# --parser# -f< --format< --cache --fix --quiet --ignore-path< --ext= --rule= --env= --global= --max-warnings= --flag=",
    ),
    row(
        "prettier",
        Runs,
        Reads,
        "--plugin# --config* --plugin-search-dir# --cache --check --write --ignore-path< --parser= --log-level= --cache-location>",
    ),
    row("jest", Runs, Reads, JEST),
    row(
        "vitest",
        Runs,
        Reads,
        "-r< --root< --dir< --outputFile> --config* -c* --coverage? --coverage.reportsDirectory> --coverage.customProviderModule# --globalSetup# --environment< --runner# --reporter< --pool= --snapshotEnvironment# --execArgv# -t= --testNamePattern= --mode=",
    ),
    row(
        "mocha",
        Runs,
        Reads,
        "-r# --require# --import# --config* --package* -R< --reporter< -u< --ui< --file* --spec< --opts# -n# --node-option# --loader# --experimental-loader# -O= -g= --grep= -f= --fgrep= -t= --timeout=",
    ),
    row("nyc", Runs, Wraps(0), "--cwd< --nycrc-path# -r# --require# --report-dir> --temp-dir> --reporter="),
    row("c8", Runs, Wraps(0), "--config# -o> --reports-dir> --temp-directory> --reporter="),
    row("ts-node", Runs, Reads, "-r# --require# -e# --eval# -p% --print% -P< --project< -C# --compiler# --cwd< --dir<"),
    row("tsx", Runs, Reads, "-r# --require# --import# --loader# -e# --eval# --tsconfig< --env-file<"),
    row("vite", Runs, Reads, "-c* --config* --outDir> --cacheDir> -m= --mode= --base= --port= --host?"),
    row("webpack", Runs, Reads, "-c* --config* -o> --output-path> --require# -r# --mode="),
    row("rollup", Runs, Reads, "-c? --config* -p# --plugin# --configPlugin# -o> --file> -d> --dir> -i< --input<"),
    row("esbuild", Runs, Reads, "--outfile> --outdir> --metafile> --tsconfig< --inject* --servedir<"),
    row("turbo", Runs, Tasks, "--cwd< --cache-dir> --filter= --api@ --profile>"),
    row("nx", Runs, Tasks, "--runner# --project= --configuration="),
    row("playwright", Runs, Reads, "-c* --config* --output> --reporter< -g= --grep= --project="),
    // Python: test runners, package managers, linters.
    row("pytest", Runs, Reads, PYTEST),
    row("py.test", Runs, Reads, PYTEST),
    row(
        "ruff",
        Runs,
        Reads,
        "-o> --output-file> --config* --cache-dir> --extend-exclude= --select= --ignore= --target-version= --output-format= --stdin-filename=",
    ),
    row(
        "mypy",
        Runs,
        Reads,
        "@% --python-executable! --config-file* --custom-typeshed-dir# --custom-typing-module# --html-report> --xml-report> --txt-report> --linecount-report> --cobertura-xml-report> --any-exprs-report> --junit-xml> --cache-dir> --shadow-file# -p= --package= -m= --module= -c# --command#",
    ),
    row(
        "pyright",
        Runs,
        Reads,
        "-p< --project< -v# --venvpath# --venv-path# --pythonpath! -t< --typeshedpath< --createstub=",
    ),
    row(
        "flake8",
        Runs,
        Reads,
        "--config* --append-config* --output-file> --tee --require-plugins= --enable-extensions= --extend-exclude= --select= --ignore=",
    ),
    row(
        "pylint",
        Runs,
        Reads,
        "--rcfile* --load-plugins# --init-hook# --output> -f< --output-format< --import-graph> --disable= --enable=",
    ),
    row("black", Runs, Reads, "--config* -c= --code= --extend-exclude= -l= --line-length= -t="),
    row("isort", Runs, Reads, "--sp* --settings-path* --settings-file* --formatter# --profile="),
    row("coverage", Runs, Reads, "--rcfile* --data-file> -d> --directory> -o> --source= --include= --omit= -m= -p"),
    row(
        "tox",
        Runs,
        Text,
        "-c* --conf* --root< --workdir> --work-dir> -x# --override# --result-json> --installpkg< -e= --discover# -i@ --index-url@",
    ),
    row(
        "nox",
        Runs,
        Text,
        "-f* --noxfile* --envdir> --report> -s= --session= -k= -t= -p= --python= --default-venv-backend= --extra-pythons=",
    ),
    row("pip", Runs, Text, PIP),
    row("pip install", Runs, Reads, PIP),
    row("pip wheel", Runs, Reads, PIP),
    row("pip download", Runs, Reads, PIP),
    row("pip3 install", Runs, Reads, PIP),
    row("pipx", Runs, Text, "--pip-args# --python! --index-url@ -i@ --spec< --preinstall="),
    row("uv", Runs, Text, UV),
    row("uv run", Runs, Wraps(0), UV),
    row("uv pip install", Runs, Reads, PIP),
    row("uv add", Runs, Reads, UV),
    row("uvx", Runs, Lends, UV),
    row("poetry", Runs, Text, "-C< --directory< -P< --project<"),
    row("poetry run", Runs, Wraps(0), "-C< --directory< -P< --project<"),
    row("poetry add", Runs, Reads, "-C< --directory< -P< --project< --source= -G= --group= -e"),
    row("pipenv run", Runs, Wraps(0), ""),
    row("hatch", Runs, Tasks, "-p= --project= --config# --data-dir> --cache-dir> -e= --env="),
    row("pdm run", Runs, Tasks, "-p< --project< -s% --site-packages%"),
    row("invoke", Runs, Tasks, "-c= --collection= -r< --search-root< -f# --config#"),
    row("pre-commit", Runs, Text, "-c* --config*"),
    // Ruby, PHP and others.
    row("bundle", Runs, Text, "--gemfile* --path> --binstubs?"),
    row("bundle exec", Runs, Lends, "--gemfile*"),
    row(
        "rake",
        Runs,
        Tasks,
        "-e# -E# -p# --execute# --execute-print# --execute-continue# -f* --rakefile* -r# --require# -I# --libdir# -R# --rakelibdir# -C< --directory< -g% --system% -j? --jobs? -T? -D? -W?",
    ),
    row(
        "rspec",
        Runs,
        Reads,
        "-r# --require# -I# -f= --format= -o> --out> -O* --options* --default-path< -e= --example= -P= --pattern= -t= --tag= --seed= --drb%",
    ),
    row(
        "rubocop",
        Runs,
        Reads,
        "-r# --require# -c* --config* --plugin# -f= --format= -o> --out> --cache-root> --only= --except=",
    ),
    row("gem install", Runs, Reads, "-i> --install-dir> -n> --bindir> -s@ --source@ -v= -P= --trust-policy="),
    row("composer", Runs, Text, "-d< --working-dir<"),
    row("composer run-script", Runs, Tasks, "-d< --working-dir<"),
    row(
        "phpunit",
        Runs,
        Reads,
        "-c* --configuration* --bootstrap# --extension# --log-junit> --coverage-html> --coverage-clover> --coverage-text? --cache-directory> --include-path# --printer# -d# --filter= --group= --testsuite=",
    ),
    row("perltidy", Runs, Reads, "-pro# -o> -b"),
    row(
        "prove",
        Runs,
        Reads,
        "-I# -M# -P# -e! --exec! --archive> --formatter# --harness# --source# --rc# -j= --state=",
    ),
];

const NPM: &str = "--prefix< -C< --dir< --cwd< -w= --workspace= -F= --filter= --loglevel= --registry@ --userconfig# --globalconfig# --script-shell! --shell! --node-options# --cache= --https-proxy@ --http-proxy@ --proxy@ --git! --viewer! --editor! --browser! --python! --init-module# --modules-folder> --global-folder> --store-dir> --virtual-store-dir> --lockfile-dir> --pnpmfile# --global-pnpmfile# --hooks# --use-yarnrc# --script= --tag= --omit= --include= -g% --global% --ignore-scripts";

const BUN: &str = "--preload# -r# --require# --import# -c# --config# --cwd< --env-file< --shell= --bunfile> --tsconfig-override< --coverage-dir> --registry@ -t= --test-name-pattern= -F= --filter= -e# --eval# -p# --print# --backend=";

const JEST: &str = "--outputFile> --config* -c* --coverage? --watch --watchAll --ci --silent --verbose --bail? --json --runInBand --updateSnapshot --passWithNoTests --detectOpenHandles --forceExit --listTests --findRelatedTests --onlyChanged --all -i -b -u -o --projects# --rootDir< --roots< --cacheDirectory> --coverageDirectory> --globalSetup# --globalTeardown# --setupFiles# --setupFilesAfterEnv# --setupTestFrameworkScriptFile# --testRunner# --runner# --transform# --reporters< --testResultsProcessor# --testSequencer# --testEnvironment< --env< --environment< --preset# --resolver# --snapshotResolver# --snapshotSerializers# --prettierPath# --watchPlugins# --filter# --modulePaths# --moduleNameMapper# --haste# --dependencyExtractor# --testLocationInResults --workerThreads -t= --testNamePattern= --testPathPattern= --testPathPatterns= -w= --maxWorkers= --coverageReporters= --changedSince= --shard= --seed= --testTimeout=";

const PYTEST: &str = "@% -p# --rootdir< -c* --config-file* --co --collect-only --no-header --no-summary --setup-show --fixtures --exitfirst --verbose --quiet --last-failed --failed-first --stepwise --new-first --strict-markers --showlocals --no-cov --cache-clear --disable-warnings --confcutdir< --import-mode= --junitxml> --junit-xml> --basetemp> --log-file> --cov-report= --cov= --cov-config* -o# --override-ini# --debug? --pdbcls# --pastebin% --ignore= --ignore-glob= --deselect= -k= -m= -n= --maxfail= -r= -W= --durations= --tb= --color= --capture= --html> --json-report-file> --result-log> --pyargs --ds= --dist= --tx! --rsyncdir< -x -v -q -s -l --lf --ff --sw -h -V";

const PIP: &str = "-i@ --index-url@ --extra-index-url@ -t> --target> --pre --prefix> --root> --install-option# --global-option# --config-settings= -C= -f@ --find-links@ -r< --requirement< -c< --constraint< -e< --editable< -d> --dest> -w> --wheel-dir> --src> --log> --report> --cache-dir> --proxy@ --python! --cert< --client-cert< --trusted-host= --platform= --python-version= --break-system-packages% --user%";

const UV: &str = "--with= --with-editable< --with-requirements< -p= --python= --directory< --project< --env-file< --config-file# --index-url@ -i@ --extra-index-url@ --index@ --default-index@ -f@ --find-links@ --cache-dir> --from= -m= --module= --script* -s* --package= --extra= --group= --only-group= --refresh-package= -q -v --frozen --locked --no-sync --isolated --active --offline";
