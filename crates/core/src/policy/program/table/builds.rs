//! Compilers and build tools. A permission for one of them covers building this project; a flag that names another
//! program, another project or further flags is judged by itself.

use super::ArgMeaning::{Reads, Tasks, Text};
use super::EffectKind::{Looks, Runs};
use super::{ProgramRow, dash, row};

pub(super) const ROWS: &[ProgramRow] = &[
    // Rust. `--config` can name a program to run everything with.
    row("cargo", Runs, Text, CARGO),
    row("cargo build", Runs, Text, CARGO),
    row("cargo check", Runs, Text, CARGO),
    row("cargo clippy", Runs, Text, CARGO),
    row("cargo test", Runs, Text, CARGO),
    row("cargo nextest", Runs, Text, CARGO),
    row("cargo bench", Runs, Text, CARGO),
    row("cargo doc", Runs, Text, CARGO),
    row("cargo run", Runs, Text, CARGO),
    row("cargo fmt", Runs, Text, "--config# --config-path< --manifest-path< -p= --package= --message-format="),
    row("cargo tree", Runs, Text, CARGO),
    row("cargo metadata", Runs, Text, CARGO),
    row("cargo add", Runs, Text, CARGO),
    row("cargo remove", Runs, Text, CARGO),
    row("cargo update", Runs, Text, CARGO),
    row("cargo fetch", Runs, Text, CARGO),
    row("cargo vendor", Runs, Reads, CARGO),
    row("cargo new", Runs, Reads, "--config# --name= --vcs= --edition="),
    row("cargo init", Runs, Reads, "--config# --name= --vcs= --edition="),
    row("cargo clean", Runs, Text, CARGO),
    row("cargo fix", Runs, Text, CARGO),
    row("cargo expand", Runs, Text, CARGO),
    row("cargo rustc", Runs, Text, CARGO),
    row("cargo rustdoc", Runs, Text, CARGO),
    row(
        "cargo install",
        Runs,
        Text,
        "--root> --config# --git@ --path< --target-dir> --index@ --registry= --version= -j=",
    ),
    row("cargo xtask", Runs, Tasks, ""),
    row("cargo make", Runs, Tasks, "--makefile* --cwd< --env-file< -p= --profile= -e$ --env$"),
    row("rustfmt", Runs, Reads, "--config# --config-path< --edition= --color= --emit="),
    row(
        "rustc",
        Runs,
        Reads,
        "@% -o> --out-dir> -C# --codegen# -L< --emit= --crate-type= --crate-name= --edition= --target= --extern# --sysroot# -Z# --cfg= --cap-lints= -A= -W= -D= -F= --explain= --print= --color= --error-format=",
    ),
    row(
        "rustdoc",
        Runs,
        Reads,
        "@% -o> --out-dir> -C# --codegen# -L< --extern# --sysroot# -Z# --test-runtool! --test-builder! --theme< --html-in-header< --edition= --cfg=",
    ),
    // Go. `-exec`, `-toolexec` and `-vettool` name programs; profiles and `-o` are written.
    dash("go", Runs, Text, "-C<"),
    dash("go version", Looks, Text, ""),
    dash("go doc", Looks, Text, "-all -src -short -u -c"),
    dash("go build", Runs, Reads, GO),
    dash("go test", Runs, Reads, GO),
    dash("go vet", Runs, Reads, GO),
    dash("go run", Runs, Reads, GO),
    dash("go install", Runs, Reads, GO),
    dash("go list", Runs, Reads, GO),
    dash("go get", Runs, Text, GO),
    dash("go mod", Runs, Text, "-C< -modfile< -o> -replace= -require= -go= -module="),
    dash("go work", Runs, Reads, "-C< -replace= -use<"),
    dash("go fmt", Runs, Reads, GO),
    dash("go env", Runs, Text, "-C< -w% -u% -json"),
    dash("go tool", Runs, Text, "-C< -exec!"),
    dash("go generate", Runs, Reads, "-C< -run= -skip= -v -n -x"),
    dash("gofmt", Runs, Reads, "-cpuprofile> -r= -d -l -w -s -e"),
    dash("golangci-lint", Runs, Reads, "-c* --config* --out.text.path> --path-prefix= --timeout= -E= -D="),
    // C and C++. Specs, wrappers, plugins and a folder of tools name programs.
    row("gcc", Runs, Reads, GCC),
    row("g++", Runs, Reads, GCC),
    row("cc", Runs, Reads, GCC),
    row("c++", Runs, Reads, GCC),
    row("clang", Runs, Reads, GCC),
    row("clang++", Runs, Reads, GCC),
    row(
        "ld",
        Runs,
        Reads,
        "@% -o> -plugin# --plugin# -T< --script< -L< --library-path< -l= -Map> -dynamic-linker= -rpath= -soname= -e=",
    ),
    row("ar", Runs, Reads, "@% --plugin#"),
    row("clang-format", Runs, Reads, "@% --style= --files< --assume-filename= --fallback-style= --lines="),
    row(
        "clang-tidy",
        Runs,
        Reads,
        "@% -p< --load# -load# --config-file# --config# --export-fixes> --store-check-profile> --extra-arg# --extra-arg-before# --vfsoverlay#",
    ),
    // Build files of the project. A file that comes through a pipe cannot be seen.
    row("make", Runs, Tasks, MAKE),
    row("gmake", Runs, Tasks, MAKE),
    row(
        "just",
        Runs,
        Tasks,
        "-f* -d< --justfile* --shell! --shell-arg# --working-directory< -c# --command# --dotenv-path< --set= -E< --chooser! --cygpath! --tempdir>",
    ),
    row("task", Runs, Tasks, "-d< --dir< -t* --taskfile* -o= --output= -c= --concurrency= -g% --global%"),
    row("ninja", Runs, Tasks, "-C< -f* -j= -l= -k= -d= -t= -w="),
    row(
        "meson",
        Runs,
        Text,
        "-C< -D$ --native-file# --cross-file# --wrap-mode= --wrapper! --gdb-path! --test-args= --logbase= -t= -j= --num-processes=",
    ),
    row(
        "cmake",
        Runs,
        Reads,
        "-P# -E# -C# -D$ -U= -G= -A= -T# -S< -B> -t= -j? --build< --open% --install# --toolchain# --prefix> --graphviz> --trace-redirect> --profiling-output> --preset# --workflow% --config= --target= --parallel? --log-level= --find-package%",
    ),
    row(
        "ctest",
        Runs,
        Text,
        "-S# -SP# --script# --script-new-process# -D= -T= -M= -C= -R= -E= -L= -LE= -I= -j? -O> -A< --output-log> --output-junit> --test-dir< --build-and-test% --build-makeprogram! --build-exe-dir< --test-command! --launcher! --overwrite# --tests-from-file< --exclude-from-file< --timeout= --preset# --resource-spec-file< --parallel?",
    ),
    row("gradle", Runs, Tasks, GRADLE),
    row("gradlew", Runs, Tasks, GRADLE),
    row("mvn", Runs, Tasks, MAVEN),
    row("mvnw", Runs, Tasks, MAVEN),
    row(
        "ant",
        Runs,
        Tasks,
        "-f* -file* -buildfile* -find= -s= -lib# -logger# -listener# -inputhandler# -main# -propertyfile< -l> -logfile> -D$ -autoproxy",
    ),
    row(
        "sbt",
        Runs,
        Tasks,
        "-java-home# --java-home# -J# -D$ --sbt-jar# -sbt-jar# --sbt-dir< --ivy< --addPluginSbtFile#",
    ),
    row(
        "bazel",
        Runs,
        Tasks,
        "--run_under! --override_repository# --override_module# --bazelrc# --output_base> --output_user_root> --install_base> --workspace_status_command! --shell_executable! --crosstool_top= --extra_toolchains# --define= --action_env= --test_env= --symlink_prefix= --build_event_json_file> --profile> --package_path< -j= --jobs= --config= --test_filter= --test_output= --remote_executor@ --remote_cache@ --bes_backend@ --credential_helper! --server_javabase# --host_jvm_args#",
    ),
    row(
        "javac",
        Runs,
        Reads,
        "@% -d> -s> -h> -J% -cp< -classpath< --class-path< -sourcepath< --source-path< -processorpath# --processor-path# -processor# -Xplugin# --module-path< -source= -target= --release= -encoding=",
    ),
    row(
        "java",
        Runs,
        Reads,
        "@% -javaagent:# -agentlib:# -agentpath:# -cp< -classpath< --class-path< -jar< --module-path< -p< -m= --module= --source= -XX:# -D$",
    ),
    row("kotlinc", Runs, Reads, "@% -d> -cp< -classpath< -Xplugin# -P= -J% -script# -expression# -e#"),
    row("scalac", Runs, Reads, "@% -d> -cp< -classpath< -Xplugin# -P= -J%"),
    row("dotnet", Runs, Reads, DOTNET),
    row("msbuild", Runs, Reads, DOTNET),
    row(
        "swift",
        Runs,
        Text,
        "-C< --package-path< --chdir< --scratch-path> --build-path> --toolchain# --sdk# -Xcc# -Xswiftc# -Xlinker# -Xcxx# -c= --configuration= --filter=",
    ),
    row(
        "zig",
        Runs,
        Reads,
        "@% --build-file* --global-cache-dir> --cache-dir> --prefix> -p> --zig-lib-dir# -femit-bin> --test-cmd! -D$ -I< -L<",
    ),
    row("mix", Runs, Tasks, "-r# --require# -e# --eval#"),
    row("rebar3", Runs, Tasks, ""),
    row(
        "cabal",
        Runs,
        Text,
        "--project-file* --with-compiler! -w! --with-ghc! --builddir> --ghc-options# --store-dir> --config-file#",
    ),
    row(
        "stack",
        Runs,
        Text,
        "--stack-yaml* --with-gcc! --ghc-options# --work-dir> --docker% --exec! --local-bin-path>",
    ),
];

const CARGO: &str = "--config# --target-dir> --out-dir> --artifact-dir> --manifest-path< -C< --path< -p= --package= -j= --jobs= --features= -F= --profile= --target= --bin= --example= --test= --bench= --exclude= --color= --message-format= -Z= --lockfile-path> --config-file# --tool-config-file# --archive-file< --extract-to> --user-config-file# -E= --filter-expr= --partition= --runner# --git@ --registry= --timings? --edition= --format= --depth= -i= --invert= -e= --edges=";

const GO: &str = "-exec! -toolexec! -vettool! -o> -outputdir> -coverprofile> -cpuprofile> -memprofile> -blockprofile> -mutexprofile> -trace> -test.coverprofile> -test.cpuprofile> -test.memprofile> -test.blockprofile> -test.mutexprofile> -test.outputdir> -test.trace> -test.gocoverdir> -test.fuzzcachedir> -test.testlogfile> -modfile< -overlay# -ldflags# -gcflags# -asmflags# -gccgoflags# -pkgdir> -compiler# -pgo= -C< -run= -bench= -benchtime= -count= -timeout= -tags= -p= -parallel= -cpu= -covermode= -coverpkg= -mod= -buildmode= -installsuffix= -f= -fuzz= -fuzztime= -skip= -shuffle= -vet= -fuzzminimizetime= -list= -blockprofilerate= -memprofilerate= -mutexprofilefraction= -args";

const GCC: &str = "@% -o> -wrapper# -specs# --specs# -B# --prefix# -fplugin# -Wl,# -Wa,# -Wp,# -fplugin-arg= -fpass-plugin# -fuse-ld# --ld-path# -ld-path# -Xlinker# -Xassembler# -Xclang# -Xpreprocessor= -dumpdir> -MF> -MT= -MQ= -I< -L< -isystem< -iquote< -include< -imacros< -idirafter< -T< --sysroot< -x= -l= -D= -U= -O? -W? -f? -m? -g? -std= -include-pch< --config# -ccc-gcc-name# -gcc-toolchain# --gcc-toolchain# -c -S -E -M -MM -MD -MMD -MP -v -w -s -pthread -shared -static -fPIC -pipe -pedantic -march? -mtune? -rdynamic -nostdlib";

const MAKE: &str = "-C< -f* -I< -j? -l? -o= -W= -O? --directory< --file* --makefile* --include-dir< --jobs? --load-average? --old-file= --assume-old= --what-if= --new-file= --assume-new= --output-sync? --debug? --eval# -E# --environment-overrides% -e% -n -k -s -B -i -t -q -r -R -w -p -d -S -L";

const GRADLE: &str = "-I# --init-script# --include-build# -b* --build-file* -c* --settings-file* -p< --project-dir< -g# --gradle-user-home# --project-cache-dir> -D$ -P= --project-prop= --system-prop$ -x= --exclude-task= --console= --tests= --max-workers= -m= -t --warning-mode= --write-verification-metadata=";

const MAVEN: &str = "-f* --file* -s# --settings# -gs# --global-settings# -t# --toolchains# -gt# --global-toolchains# -l> --log-file> -D$ --define$ -P= --activate-profiles= -pl= --projects= -rf= --resume-from= -T= --threads= -b= --builder=";

const DOTNET: &str = "@% -o> --output> --project< --artifacts-path> --settings< -s< --configfile# --source@ --logger< -l< --test-adapter-path# --collect= --diag> --results-directory> --additionalprobingpath# --additional-deps# --depsfile< --runtimeconfig# --startup-hook# -p$ --property$ -c= --configuration= -f= --framework= -r= --runtime= --filter= -v= --verbosity= --launch-profile=";
