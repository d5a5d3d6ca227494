//! Commands that run code, with the flags that do more than the command itself.

use super::ArgMeaning::{Reads, Text, Wraps};
use super::EffectKind::Runs;
use super::{ProgramRow, row};

pub(super) const ROWS: &[ProgramRow] = &[
    // Archives: their flags can name programs.
    row(
        "tar",
        Runs,
        Reads,
        "-c -x -t -r -u -d -A -v -z -j -J -a -Z -k -p -P -h -m -O -S -w -W -B -i -l -U -o -s -n --create --extract --get --list --append --update --diff --compare --catenate --concatenate --delete -f< -C/ -T< -X< -I! -F! -b= -H= -K= -L= -N= -V= --file< --directory/ --files-from< --exclude-from< --use-compress-program! --to-command! --checkpoint-action# --checkpoint? --info-script! --new-volume-script! --rsh-command! --rmt-command! --index-file> -g> --listed-incremental> --volno-file> --exclude= --transform# --xform# --strip-components= --one-top-level?",
    ),
    row("bsdtar", Runs, Reads, "-f< -C/ -T< -X< --use-compress-program! -s= --exclude="),
    row(
        "zip",
        Runs,
        Reads,
        "-TT# --unzip-command# -b> --temp-path> -O> --output-file> -lf> --logfile-path> -i= -x= -n= -t= -P= -r -q -T -m -j -u -9",
    ),
    row("unzip", Runs, Reads, "-d/ -x= -P= -l -t -o -q -n -j -p"),
    row("7z", Runs, Reads, "-o?"),
    row("gzip", Runs, Reads, "-S= --suffix="),
    row("gunzip", Runs, Reads, "-S= --suffix="),
    row("bzip2", Runs, Reads, ""),
    row("xz", Runs, Reads, "--files< --files0< -S= --suffix= -T= -F= -C="),
    row("zstd", Runs, Reads, "-o> --output-dir-flat> --output-dir-mirror> -D< --filelist< --patch-from< --trace> -T="),
    row("cpio", Runs, Reads, "-F# --file# -O> -I< --rsh-command! -D< --directory< -E< --pattern-file<"),
    // Files by name, with the effect on each.
    row(
        "fd",
        Runs,
        Reads,
        "-x# --exec# -X# --exec-batch# --base-directory< --search-path< --ignore-file< -e= -t= -d= -E= -S= -c= -g -i -s -a -l -L -p -H -I -u -0 -1 -q -F",
    ),
    row(
        "fdfind",
        Runs,
        Reads,
        "-x# --exec# -X# --exec-batch# --base-directory< --search-path< --ignore-file< -e= -t= -d= -E= -S= -c= -g -i -s -a -l -L -p -H -I -u -0 -1 -q -F",
    ),
    row("entr", Runs, Wraps(0), "-a -c -d -n -p -r -s% -x -z"),
    row("split", Runs, Reads, "--filter# -b= -l= -n= -C= -a= -t= -d -x -e -u"),
    row("csplit", Runs, Reads, "-f> --prefix> -b= -n="),
    row(
        "patch",
        Runs,
        Reads,
        "-i< --input< -o> --output> -r> --reject-file> -d< --directory< -p= -D= -F= -g= --get= -B= -Y= -z= -V= -b -N -R -s -t -u",
    ),
    row("envsubst", Runs, Text, ""),
    row("script", Runs, Text, "-c# --command# -O> --log-out> -I> -B> -T>"),
    row("strace", Runs, Wraps(0), "-o> -e= -p= -s= -E= -u= -P= -b= -S= -f -c -t -v -y -q"),
    row("ltrace", Runs, Wraps(0), "-o> -e= -p= -s= -u= -f -c -S"),
    row("gdb", Runs, Reads, "-ex# -iex# -x# -ix# --command# --eval-command# -cd< --cd< -p= --args%"),
    row("valgrind", Runs, Wraps(0), "--log-file> --xml-file> --suppressions< --tool= --db-command! --trace-children="),
    row("perf", Runs, Text, "-o> --output> -i< --input< -e= -p="),
    // Databases and viewers: all of them can start a shell.
    row(
        "openssl",
        Runs,
        Text,
        "-engine# -provider# -provider-path# -config# -in< -out> -keyout> -key< -inkey< -CA< -passin= -passout=",
    ),
    row(
        "less",
        Runs,
        Reads,
        "-k# -o> -O> -P= -p= -t= -T< -x= -y= -z= --lesskey-file# --lesskey-src# --lesskey-content# --log-file> --LOG-FILE>",
    ),
    row("more", Runs, Reads, ""),
    row(
        "bat",
        Runs,
        Reads,
        "--pager# --map-syntax= -l= --language= --theme= --style= -r= --line-range= -H= --paging= --color= --tabs= --wrap= --terminal-width= -p -n -A -P",
    ),
    row("delta", Runs, Reads, "--pager# --config# -s -n"),
    row(
        "gpg",
        Runs,
        Reads,
        "--options# --homedir# -o> --output> --agent-program! --dirmngr-program! --photo-viewer# --exec-path# --keyring< --log-file>",
    ),
    row("ssh-keygen", Runs, Text, "-f> -D# -w# -P# -N= -C= -t= -b="),
    // Containers: the program inside is unknown, and a mount can reach any file.
    row("docker", Runs, Text, DOCKER),
    row("docker run", Runs, Text, CONTAINER),
    row("docker create", Runs, Text, CONTAINER),
    row("docker exec", Runs, Text, CONTAINER),
    row("docker build", Runs, Reads, IMAGE),
    row("docker buildx build", Runs, Reads, IMAGE),
    row("docker cp", Runs, Text, "--context= -H@ --host@ --config# -a -L -q"),
    row("docker compose", Runs, Text, COMPOSE),
    row("docker-compose", Runs, Text, COMPOSE),
    row("podman", Runs, Text, DOCKER),
    row("podman run", Runs, Text, CONTAINER),
    row("podman exec", Runs, Text, CONTAINER),
    row("podman build", Runs, Reads, IMAGE),
];

const DOCKER: &str = "--context= -c= -H@ --host@ --config# --tlscacert< --tlscert< --tlskey< -l= --log-level= --runtime! --conmon! --hooks-dir# --module#";

const CONTAINER: &str = "-v# --volume# --volumes-from# --mount# --privileged% --device# --cap-add# --security-opt# --gpus= --pid# --ipc# --uts# --userns# --network= --net= --cidfile> --env-file< --label-file< --add-host= --runtime# --cgroup-parent= -e= --env= -w= --workdir= -u= --user= --name= --entrypoint= -p= --publish= -h= --hostname= -l= --label= -m= --memory= -c= --cpus= -a= --platform= --pull= -i -t -d -q -P";

const IMAGE: &str = "-f* --file* -o> --output> --iidfile> --metadata-file> --secret# --ssh# --build-context# --allow# --cache-from= --cache-to> -t= --tag= --build-arg= --target= --platform= --progress= --network= --label= --builder= -q";

const COMPOSE: &str = "-f* --file* --project-directory< --env-file< -p= --project-name= --profile= -v# --volume# -H@ --host@ -c= --context= --ansi= --progress= --parallel=";
